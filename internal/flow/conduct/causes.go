package conduct

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/failure"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
)

// A Cause is one reason for which work of a flow failed: a failure.Cause with the failures that have it
// and the lines of output that show it.
type Cause struct {
	ID     string   `json:"id"` // the same for the same cause
	Title  string   `json:"title"`
	Test   string   `json:"test,omitempty"`   // the test that failed; empty: the message is the cause
	Phases []string `json:"phases"`           // where the work failed
	Lines  []string `json:"lines"`            // the first lines about it in the output of the newest failure
	Output string   `json:"output,omitempty"` // the file with that output, relative to the root

	Failures []run.Failure `json:"failures"` // the oldest first
	First    time.Time     `json:"first"`
	Last     time.Time     `json:"last"`
}

// Names lists the failed units, batches, screens and topics.
func (c *Cause) Names() (names []string) {
	for _, f := range c.Failures {
		names = append(names, f.Name())
	}
	return names
}

// CauseReader groups failures by their causes. It reads the output of each failure once, and is safe
// for concurrent use.
type CauseReader struct {
	project *project.Project

	mu    sync.Mutex
	known map[failedItem]failedCase
}

type failedItem struct {
	item string
	at   time.Time
}

// A failedCase is a failure with the file of its output.
type failedCase struct {
	failure.Case
	output, text string
}

// NewCauseReader returns a CauseReader for a codebase.
func NewCauseReader(a *project.Project) *CauseReader {
	return &CauseReader{project: a, known: map[failedItem]failedCase{}}
}

// Causes groups failures by their causes, the most frequent first. With an error, an output could not
// be read, and its failure is grouped by its message.
func (r *CauseReader) Causes(failures []run.Failure) (list []Cause, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, cases := map[failedItem]failedCase{}, []failure.Case{}
	for _, f := range failures {
		key := failedItem{f.Item, f.At}
		c, known := r.known[key]
		if !known {
			var unread error
			c, unread = r.caseOf(f)
			err = errors.Join(err, unread)
		}
		now[key], cases = c, append(cases, c.Case)
	}
	r.known = now
	list = []Cause{}
	for _, found := range failure.Causes(cases) {
		c := Cause{ID: found.ID, Title: found.Title, Test: found.Test, Phases: []string{}, Lines: []string{}}
		phases := map[string]bool{}
		for _, i := range found.Cases {
			f := failures[i]
			if !phases[f.Phase] {
				phases[f.Phase], c.Phases = true, append(c.Phases, f.Phase)
			}
			if c.Failures = append(c.Failures, f); c.First.IsZero() || f.At.Before(c.First) {
				c.First = f.At
			}
			if !f.At.Before(c.Last) {
				of := now[failedItem{f.Item, f.At}]
				c.Last, c.Output = f.At, of.output
				if c.Lines = failure.Excerpt(of.text, c.Test); c.Lines == nil {
					c.Lines = []string{}
				}
			}
		}
		list = append(list, c)
	}
	return list, err
}

// outputRead limits how much of the end of an output is read, and outputKept how much of it stays in
// memory.
const (
	outputRead = 1 << 20
	outputKept = 16 << 10
)

// caseOf describes a failure by the output of the check that failed, or by its reason.
func (r *CauseReader) caseOf(f run.Failure) (c failedCase, err error) {
	reason := strings.TrimPrefix(f.Reason, f.Phase+": ")
	what, path, ofCommand := cutLast(reason, job.OutputSep)
	what, _, _ = cutLast(what, "; next: ")
	c = failedCase{Case: failure.Case{Names: []string{f.Name(), f.Unit, f.Part}, Reason: what}}
	if !ofCommand {
		return c, nil
	}
	path, _, _ = cutLast(path, "; next: ")
	if c.output = filepath.ToSlash(path); filepath.IsAbs(path) {
		if c.output, err = filepath.Rel(r.project.Root.Dir(), path); err != nil {
			return c, err
		}
	}
	below, err := filepath.Rel(r.project.Below(callsDir), filepath.Join(r.project.Root.Dir(), filepath.FromSlash(c.output)))
	if err != nil || !filepath.IsLocal(below) {
		c.output = "" // no file of a call: the text of an agent can say anything
		return c, nil
	}
	text, err := endOf(filepath.Join(r.project.Below(callsDir), below))
	if err != nil {
		c.output = ""
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return c, err
	}
	command, _, _ := strings.Cut(strings.TrimPrefix(what, `"`), `" failed`)
	how := failure.Of(command, 1, false, text, r.project.Root.Dir())
	c.Failure, c.text = &how, text[max(0, len(text)-outputKept):]
	if len(how.Tests) == 0 {
		c.Reason = lockkeeper.LocalTimes(what)
	}
	return c, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// endOf reads the end of a file.
func endOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() // the file was only read
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-outputRead), outputRead))
	return string(text), err
}
