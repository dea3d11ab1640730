// Package inspect has the commands that look and change nothing: status, why, audit,
// config and doctor.
package inspect
