package term

import (
	"cmp"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"lockkeeper/internal/machine/process"
)

// IO is how a command reaches the world outside: streams, environment, clock.
type IO struct {
	In, Out, Err *os.File
	Dir          string   // working directory
	Env          []string // as os.Environ
	Now          func() time.Time
	After        func(time.Duration) <-chan time.Time // nil: time.After
	Above        func() []process.Ancestor            // the processes this was started from; nil: unknown
}

// System returns the IO of this process.
func System() (*IO, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return &IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Dir: dir, Env: os.Environ(), Now: time.Now, Above: process.Above}, nil
}

func (io *IO) Lookup(name string) (string, bool) {
	for _, entry := range slices.Backward(io.Env) { // the last entry counts
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func IsTerminal(f File) bool { return term.IsTerminal(int(f.Fd())) }

// Attended reports whether a person can be asked: standard error shows the question, and
// standard input is a terminal.
func (io *IO) Attended() bool { return IsTerminal(io.In) && IsTerminal(io.Err) }

// Few returns how many items of a list to write to f: n for a person at a terminal, all
// for a program.
func Few(f File, n int) int {
	if IsTerminal(f) {
		return n
	}
	return All
}

// All is a limit above the length of any list.
const All = math.MaxInt

// colours reports whether text for f may be coloured.
func (io *IO) colours(f File) bool {
	if never, _ := io.Lookup("NO_COLOR"); never != "" {
		return false
	}
	return io.HandlesEscapes(f)
}

// HandlesEscapes reports whether f is a terminal that obeys escape sequences.
func (io *IO) HandlesEscapes(f File) bool {
	kind, _ := io.Lookup("TERM")
	return kind != "dumb" && IsTerminal(f)
}

// Window returns the columns and rows of f, or 0 if it is not a terminal. A terminal that
// does not report its size has 80 columns and 24 rows.
func Window(f File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return cmp.Or(columns, 80), cmp.Or(rows, 24)
}

func Width(f File) int {
	columns, _ := Window(f)
	return columns
}
