package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"lockkeeper/internal/process"
)

// IO is everything a command shares with the world outside.
type IO struct {
	In, Out, Err *os.File
	Dir          string   // working directory
	Env          []string // as os.Environ
	Now          func() time.Time
	After        func(time.Duration) <-chan time.Time // how one waits; nil: time.After
	Above        func() []process.Ancestor            // what this was started from; nil: nobody knows
}

// System is the IO of this process.
func System() (*IO, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return &IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Dir: dir, Env: os.Environ(), Now: time.Now, Above: process.Above}, nil
}

// Process runs the command line of this process and returns the exit code.
func Process() int {
	io, err := System()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lockkeeper:", err)
		return exitFailed
	}
	return Main(context.Background(), io, os.Args[1:])
}

func (io *IO) lookup(name string) (string, bool) {
	for _, entry := range slices.Backward(io.Env) { // the last one counts
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func isTerminal(f file) bool { return term.IsTerminal(int(f.Fd())) }

// attended reports whether somebody can be asked: who sees the question, and can type.
func (io *IO) attended() bool { return isTerminal(io.In) && isTerminal(io.Err) }

// few is how many items of a list f gets: n for a person at a terminal, all where
// a program reads, so that it finds each of them.
func few(f file, n int) int {
	if isTerminal(f) {
		return n
	}
	return all
}

// all is more items than any list has.
const all = math.MaxInt

// colours reports whether text for f may be coloured.
func (io *IO) colours(f file) bool {
	if never, _ := io.lookup("NO_COLOR"); never != "" {
		return false
	}
	return io.obeys(f)
}

// obeys reports whether f is a terminal that does what escape sequences say.
func (io *IO) obeys(f file) bool {
	kind, _ := io.lookup("TERM")
	return kind != "dumb" && isTerminal(f)
}

// window is how many columns and rows f shows; 0 when it is no terminal. One that does
// not say has the size that terminals always had.
func window(f file) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return cmp.Or(columns, 80), cmp.Or(rows, 24)
}

func width(f file) int {
	columns, _ := window(f)
	return columns
}
