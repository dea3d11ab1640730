// Package gittest keeps the git of tests apart from the git of the person who runs them.
package gittest
