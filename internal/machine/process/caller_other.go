//go:build !linux

package process

import (
	"os"

	"lockkeeper"
)

// CallingProgram names the program that called this one. Its terminal is not known here.
func CallingProgram() (*lockkeeper.Process, string, error) {
	p, err := Identify(os.Getppid())
	return &p, "", err
}
