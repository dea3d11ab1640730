// Package demo has the demonstration, which runs in a directory of its own.
package demo
