package term

import (
	"io"
	"os"
)

// File is where text is written: standard error, or standard output as an *Output.
type File interface {
	io.Writer
	Fd() uintptr
}

// Output is standard output. It remembers the first write that failed, so that no command
// must check each line.
type Output struct {
	File *os.File // not embedded: all that is written goes through Write
	Err  error
}

// Fd implements file.
func (o *Output) Fd() uintptr { return o.File.Fd() }

func (o *Output) Write(b []byte) (int, error) {
	if o.Err != nil {
		return 0, o.Err
	}
	n, err := o.File.Write(b)
	o.Err = err
	return n, err
}
