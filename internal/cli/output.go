package cli

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// file is what text is written to: standard error, or standard output as an
// *output.
type file interface {
	io.Writer
	Fd() uintptr
}

// output is standard output. It remembers that something could not be written,
// so that no command has to look after each line.
type output struct {
	file *os.File // not embedded: all that is written goes through Write
	err  error
}

// Fd implements file.
func (o *output) Fd() uintptr { return o.file.Fd() }

func (o *output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.file.Write(b)
	o.err = err
	return n, err
}

// failed is how the program ends when its answer did not arrive; nil when it
// did. Of a reader that has seen enough nothing is said, as is the custom.
func (o *output) failed() error {
	switch {
	case o.err == nil:
		return nil
	case errors.Is(o.err, syscall.EPIPE):
		return &codedError{exit: 128 + int(syscall.SIGPIPE)}
	}
	return &codedError{exit: exitFailed, err: errors.New("the answer could not be written: " + o.err.Error())}
}
