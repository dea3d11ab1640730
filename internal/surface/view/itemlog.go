package view

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
)

// Log is a part of the output of an agent or command.
type Log struct {
	Text   string    `json:"text"`
	From   int64     `json:"from"`             // offset of the text
	Next   int64     `json:"next"`             // offset at which the rest begins
	Size   int64     `json:"size"`             // size of the whole log
	Said   time.Time `json:"said"`             // time of the last output
	Silent bool      `json:"silent,omitempty"` // the item runs without output for a long time
	Path   string    `json:"path"`
}

// tailFrom requests the end of a log.
const tailFrom = -1

// logTail limits the bytes of a log shown at once.
const logTail = 64 << 10

// ItemLog returns the output of an item's agent or command from an offset. A negative offset
// requests the end of the log.
func (rd *Reader) ItemLog(ctx context.Context, name string, from int64) (*Log, error) {
	_, it, err := rd.find(ctx, name)
	if err != nil {
		return nil, err
	}
	log, err := rd.log(it, from)
	if err == nil && log == nil {
		err = &lockkeeper.InputError{Field: "item", Value: name, Reason: "it has no output", Next: "lockkeeper why " + it.ID}
	}
	return log, err
}

// log reads the output of an item. It returns nil if there is none.
func (rd *Reader) log(it *lockkeeper.Item, from int64) (*Log, error) {
	path := ""
	if name := run.FlowOf(it); name != "" {
		entries, wrong := rd.journal.All(name)
		at, _, err := lastOutput(entries, it.ID)
		if at == "" {
			return nil, errors.Join(wrong, err)
		}
		path = at
	} else if it.Attempts == 0 {
		return nil, nil
	}
	var f *os.File
	var err error
	if path != "" {
		f, err = os.Open(path)
	} else {
		f, err = job.Output(rd.project, it, it.Attempts)
	}
	if err != nil {
		return nil, ignoreMissing(err)
	}
	log, err := readLog(f, from, logTail)
	if err != nil {
		return nil, err
	}
	log.Silent = it.Status == lockkeeper.ItemDispatched && it.Stage == lockkeeper.StageRunning && time.Since(log.Said) >= rd.project.Config.Agent.StallAfter
	return log, nil
}

// lastOutput returns the last output file of an item's agent or check, and its time.
func lastOutput(entries []run.CallRecord, item string) (path string, at time.Time, err error) {
	for _, e := range slices.Backward(entries) {
		if e.Item != item {
			continue
		}
		if path, at, err = e.Said(); err != nil || path != "" {
			return path, at, err
		}
	}
	return "", time.Time{}, nil
}

// readLog reads whole characters from a log that may grow, and closes it. It reads at most limit
// bytes from an offset. A negative offset requests the end of the log.
func readLog(f *os.File, from, limit int64) (_ *Log, err error) {
	defer f.Close() // the file was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	log := &Log{Size: info.Size(), Said: info.ModTime(), Path: f.Name()}
	if from < 0 {
		from = max(0, log.Size-limit)
	}
	log.From = min(from, log.Size) // the log was truncated meanwhile
	text, err := io.ReadAll(io.LimitReader(io.NewSectionReader(f, log.From, log.Size-log.From), limit))
	if err != nil {
		return nil, err
	}
	log.From, log.Text = wholeText(log.From, text)
	log.Next = log.From + int64(len(log.Text))
	return log, nil
}

// wholeText drops partial characters at both ends of text, and returns its new offset.
func wholeText(from int64, text []byte) (int64, string) {
	if from > 0 {
		for n := 0; n < utf8.UTFMax && len(text) > 0 && !utf8.RuneStart(text[0]); n++ {
			text, from = text[1:], from+1
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				text = text[:len(text)-n]
			}
			break
		}
	}
	return from, string(text)
}

// ignoreMissing returns nil for an error about a missing file or item.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || lockkeeper.CodeOf(err) == lockkeeper.CodeInput {
		return nil
	}
	return err
}
