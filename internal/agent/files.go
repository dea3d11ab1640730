package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

// Files has the names of a call's files. All of them are next to Output, in a directory that the
// agent should not be able to write to.
type Files struct {
	Output string // standard output of the agent; must not exist yet
	Log    string // standard error of the agent
}

func (f Files) check() error {
	for _, name := range []string{f.Output, f.Log} {
		if !filepath.IsAbs(name) {
			return &lockkeeper.InputError{Field: "file", Value: name, Reason: "not an absolute path; the agent works in another directory", Next: "give an absolute path"}
		}
	}
	return nil
}

// Prompt returns the file with the prompt, the standard input of the agent.
func (f Files) Prompt() string { return f.Output + ".prompt" }

func (f Files) Schema() string { return f.Output + ".schema.json" }

// Exit returns the file that records how the agent ended.
func (f Files) Exit() string { return f.Output + ".exit.json" }

// An opened has the files that this process has open during a call.
type opened struct {
	all    []*os.File
	output *os.File // the output, to read
}

// close closes the files. It ignores errors, because this process has written nothing through
// these descriptors.
func (o *opened) close() {
	for _, f := range o.all {
		f.Close()
	}
}

func (o *opened) open(name string, flag int) (*os.File, error) {
	file, err := os.OpenFile(name, flag, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, &lockkeeper.InputError{Field: "output", Value: name, Reason: "it already exists, from another call", Next: "read that call with Completed, or name another file"}
	}
	if err == nil {
		o.all = append(o.all, file)
	}
	return file, err
}

// prepare creates the files of a call. It refuses an existing file, which belongs to another
// call.
func (f Files) prepare(r *Request, stdin string, cmd *Command) (_ *opened, err error) {
	const made = os.O_CREATE | os.O_EXCL | os.O_WRONLY | os.O_APPEND
	o := &opened{}
	if cmd.Stdout, err = o.open(f.Output, made); err != nil {
		return o, err
	}
	if cmd.Stderr, err = o.open(f.Log, made); err != nil {
		return o, err
	}
	if err := os.WriteFile(f.Prompt(), []byte(stdin), 0o600); err != nil {
		return o, err
	}
	if r.Schema != nil {
		if err := os.WriteFile(f.Schema(), r.Schema, 0o600); err != nil {
			return o, err
		}
	}
	if cmd.Stdin, err = o.open(f.Prompt(), os.O_RDONLY); err != nil {
		return o, err
	}
	o.output, err = o.open(f.Output, os.O_RDONLY)
	return o, err
}

// An exitRecord records the end of an agent. It is written after the output was synced to disk.
type exitRecord struct {
	Exit
	EndedAt time.Time `json:"ended_at"`
}

func (e exitRecord) write(ctx context.Context, f Files) error {
	out, err := os.OpenFile(f.Output, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(out.Sync(), out.Close())
	}
	if err == nil {
		err = durable.WriteJSON(ctx, f.Exit(), e, 0o600)
	}
	if err != nil {
		return fmt.Errorf("record the end of the agent: %w", err)
	}
	return nil
}

// openRegular opens a regular file to read. Opening a pipe would wait for a writer.
func openRegular(name string) (*os.File, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	return os.Open(name)
}

func readExit(f Files) (*Exit, error) {
	e, err := durable.ReadJSON[exitRecord](f.Exit())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &e.Exit, err
}

// lastLine returns the last line of a log that is not empty, cleaned for an error.
func lastLine(name string) string {
	file, err := openRegular(name)
	if err != nil {
		return "" // the log is optional
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	end := make([]byte, 4<<10)
	n, _ := file.ReadAt(end, max(0, info.Size()-int64(len(end)))) // a partial read is enough
	text := strings.TrimSpace(string(end[:n]))
	return quote(text[strings.LastIndexAny(text, "\r\n")+1:])
}
