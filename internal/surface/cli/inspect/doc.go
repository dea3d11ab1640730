// Package inspect has the commands that change nothing: status, why, audit, config and doctor.
package inspect
