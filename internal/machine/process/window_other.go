//go:build !linux

package process

import (
	"os"

	"lockkeeper"
)

// Window names the program that called this one. Its terminal is not known here.
func Window() (*lockkeeper.Process, string, error) {
	p, err := Identify(os.Getppid())
	return &p, "", err
}
