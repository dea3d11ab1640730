package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
)

// outputDir has the outputs, relative to the root.
const outputDir = project.DirName + "/output"

// outputLimit is how much of the end of an output is kept. The file of a running command may have
// twice as much, so that it is not truncated at every line.
const outputLimit = 10 << 20

// An outputs stores the output of each attempt in a file, for gate.keep.
type outputs struct {
	dir  *os.Root
	keep time.Duration

	mu     sync.Mutex
	pruned time.Time
}

func outputPath(a *project.Project) string {
	return filepath.Join(a.Root.Dir(), filepath.FromSlash(outputDir))
}

func makeOutputs(a *project.Project) (*outputs, error) {
	if err := os.Mkdir(outputPath(a), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := openOutputs(a)
	if err != nil {
		return nil, err
	}
	return &outputs{dir: dir, keep: a.Config.Gate.Keep}, nil
}

func openOutputs(a *project.Project) (*os.Root, error) {
	info, err := os.Lstat(outputPath(a))
	if err == nil && !info.IsDir() { // a link could lead anywhere
		err = &fs.PathError{Op: "open", Path: outputPath(a), Err: errors.New("it is not a directory")}
	}
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(outputPath(a))
}

func outputName(item string, attempt int) string { return fmt.Sprintf("%s.%d.log", item, attempt) }

// prune removes expired outputs, once an hour.
func (o *outputs) prune(now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.pruned) < time.Hour {
		return nil
	}
	o.pruned = now
	list, err := fs.ReadDir(o.dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range list {
		info, err := e.Info()
		if err == nil && now.Sub(info.ModTime()) > o.keep {
			err = o.dir.Remove(e.Name())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another worker may prune as well
			return err
		}
	}
	return nil
}

// record starts to record the output of an attempt. It replaces the output of an earlier attempt
// with the same number.
func (o *outputs) record(item string, attempt int) (_ *recording, err error) {
	if err := o.prune(time.Now()); err != nil {
		return nil, err
	}
	name := outputName(item, attempt)
	if err := o.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	r := &recording{name: name, done: make(chan struct{})}
	if r.file, err = o.dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	if r.out, r.in, err = os.Pipe(); err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	go r.copy() // the goroutine ends with close
	return r, nil
}

// A recording copies the output of a command into its file.
type recording struct {
	name    string
	in      *os.File // the command's end of the pipe
	out     *os.File
	file    *os.File
	size    int64 // size of the file
	dropped int64
	end     []byte // the last bytes
	err     error
	done    chan struct{}
}

// copy copies the output. If the disk is full, it drops output, so that the command never blocks.
func (r *recording) copy() {
	defer close(r.done)
	buf := make([]byte, 32<<10)
	for {
		n, err := r.out.Read(buf)
		if n > 0 && r.err == nil {
			r.err = r.write(buf[:n])
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
				r.err = errors.Join(r.err, err)
			}
			return
		}
	}
}

// lastLine bounds the search for the last line.
const lastLine = 4 << 10

func (r *recording) write(b []byte) error {
	n, err := r.file.Write(b)
	r.size += int64(n)
	r.end = append(r.end, b...)
	r.end = append(r.end[:0], r.end[max(0, len(r.end)-lastLine):]...)
	if err == nil && r.size > 2*outputLimit {
		err = r.cut()
	}
	return err
}

// cut keeps the end of the file, after a note about the dropped part.
func (r *recording) cut() error {
	tail := make([]byte, outputLimit)
	if _, err := r.file.ReadAt(tail, r.size-outputLimit); err != nil {
		return err
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < lastLine { // the kept part begins with a whole line
		tail = tail[i+1:]
	}
	r.dropped += r.size - int64(len(tail))
	note := fmt.Sprintf("[lockkeeper: about %d MB before this line were dropped]\n", r.dropped>>20)
	if err := r.file.Truncate(0); err != nil {
		return err
	}
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, err := r.file.Write(append([]byte(note), tail...))
	r.size = int64(n)
	return err
}

// drainFor bounds the wait for the end of the output, because a process that cannot be killed may
// still have the pipe open.
const drainFor = time.Second

// close ends the recording. It returns an error if the recording is incomplete.
func (r *recording) close() error {
	err := errors.Join(r.in.Close(), r.out.SetReadDeadline(time.Now().Add(drainFor)))
	<-r.done
	if r.err == nil && r.size > outputLimit {
		r.err = r.cut()
	}
	return errors.Join(err, r.err, r.out.Close(), r.file.Close())
}

// last returns the last line of output, without control characters.
func (r *recording) last() string {
	text := strings.TrimSpace(string(r.end))
	text = text[strings.LastIndexAny(text, "\r\n")+1:]
	text = strings.Map(func(c rune) rune {
		if unicode.IsGraphic(c) && c != unicode.ReplacementChar && !unicode.Is(unicode.Bidi_Control, c) {
			return c
		}
		return -1
	}, text)
	const wide = 300
	if cut := []rune(text); len(cut) > wide {
		text = "…" + string(cut[len(cut)-wide:])
	}
	return text
}

func Output(a *project.Project, it *lockkeeper.Item, attempt int) (*os.File, error) {
	none := func(reason, next string) error {
		return &lockkeeper.InputError{Field: "item", Value: it.ID, Reason: reason, Next: next}
	}
	f, err := openOutput(a, outputName(it.ID, attempt))
	if errors.Is(err, fs.ErrNotExist) {
		// A retried item counts from 1 again, so older attempts may have larger numbers.
		switch {
		case it.Attempts == 0:
			return nil, none("it has not started, so it has no output", "lockkeeper why "+it.ID)
		case attempt > it.Attempts:
			return nil, none(fmt.Sprintf("it has no attempt %d; the last is %d", attempt, it.Attempts), "lockkeeper job output "+it.ID)
		}
		reason := fmt.Sprintf("no output of attempt %d is kept here; outputs are removed after gate.keep, %s", attempt, a.Config.Gate.Keep)
		if a.Config.Deployment == config.MultiNode {
			reason += ", and stay on the node that ran it"
		}
		return nil, none(reason, "lockkeeper why "+it.ID)
	}
	return f, err
}

func openOutput(a *project.Project, name string) (*os.File, error) {
	dir, err := openOutputs(a)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Open(name)
}
