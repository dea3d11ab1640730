package term

import (
	"cmp"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project/config"
)

// IO holds the inputs and outputs of a command: streams, environment and clock.
type IO struct {
	In, Out, Err *os.File
	Dir          string   // working directory
	Env          []string // environment, as os.Environ
	Now          func() time.Time
	After        func(time.Duration) <-chan time.Time // nil: time.After
	Above        func() []process.Ancestor            // the ancestors of this process; nil: unknown
	Plain        bool                                 // no colors
}

func System() (*IO, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return &IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Dir: dir, Env: os.Environ(), Now: time.Now, Above: process.Above}, nil
}

// Lookup returns a variable of the environment.
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

// File is a stream for text: standard error, or standard output as an *Output.
type File interface {
	io.Writer
	Fd() uintptr
}

// Output is standard output. It remembers the first write that failed, so that commands
// need not check each line.
type Output struct {
	File *os.File // the file is not embedded, so that every write goes through Write
	Err  error
}

func (o *Output) Fd() uintptr { return o.File.Fd() }

func (o *Output) Write(b []byte) (int, error) {
	if o.Err != nil {
		return 0, o.Err
	}
	n, err := o.File.Write(b)
	o.Err = err
	return n, err
}

// These escape sequences set the colors in use.
const (
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Bold   = "\x1b[1m"
	Dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

// These escape sequences move the cursor.
const (
	ClearScreen = "\x1b[H\x1b[2J" // clears the screen and starts at the top
	ClearLine   = "\r\x1b[K"      // clears the line and starts at the left
)

// Painter returns a function that colors text for f, if f may be colored.
func (io *IO) Painter(f File) func(color, text string) string {
	if never, _ := io.Lookup("NO_COLOR"); io.Plain || never != "" || !io.HandlesEscapes(f) {
		return func(_, text string) string { return text }
	}
	return func(color, text string) string { return color + text + plain }
}

// Duration is a flag for a duration, in the syntax of the configuration.
type Duration time.Duration

func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *Duration) Type() string { return "duration" }

func (d *Duration) Set(text string) error {
	v, err := config.ParseDuration(text)
	*d = Duration(v)
	return err
}

// Dollars is a flag for an amount of money.
type Dollars float64

func (d *Dollars) String() string { return strconv.FormatFloat(float64(*d), 'f', -1, 64) }

func (d *Dollars) Type() string { return "dollars" }

func (d *Dollars) Set(text string) error {
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(v > 0 && v <= 1e6) { // false for NaN
		return &lockkeeper.InputError{Field: "budget", Value: text, Reason: "not an amount of dollars, up to a million", Next: "write it like 20 or 2.50, or omit the flag"}
	}
	*d = Dollars(v)
	return nil
}
