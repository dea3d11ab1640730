package agent

import (
	"errors"
	"io/fs"
)

// Completed reads the files of a call, which another process may have made. It reports whether
// the call is finished. If so, the error is the one that Call would have returned. Otherwise the
// result has the known facts, such as the session. Missing or partial output is not an error.
func Completed(a Adapter, f Files, schemaText []byte) (res Result, finished bool, err error) {
	form, err := newSchema(schemaText)
	if err != nil {
		return Result{}, false, err
	}
	exit, err := readExit(f)
	if err != nil {
		return Result{}, false, err
	}
	file, err := openRegular(f.Output)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, err
	}
	defer file.Close()
	r := newReader(file, a.stream(), func(Event) {})
	for moved := true; moved; {
		if moved, err = r.advance(readAtOnce); err != nil {
			return Result{}, false, err
		}
	}
	v := verdict{name: a.Name(), files: f, form: form, reader: r, exit: exit}
	return v.pass()
}

// A verdict evaluates the output of an agent, both when it has just ended and when its file is
// read later.
type verdict struct {
	name   string
	files  Files
	form   *schema
	reader *reader
	exit   *Exit // nil: not observed
}

func (v *verdict) origin(res Result) Origin {
	return Origin{Agent: v.name, Session: res.Session, Output: v.files.Output, Log: v.files.Log}
}

// pass returns the result, whether the call is finished, and if so its error.
func (v *verdict) pass() (Result, bool, error) {
	res, failed := v.reader.stream.result(v.reader.lines.rest)
	res.Exit = v.exit
	answer := res.Structured
	res.Structured = nil // until it is validated
	if !v.reader.finished(v.exit) {
		return res, false, nil
	}
	from := v.origin(res)
	if failed != nil {
		return res, true, failed.err(from)
	}
	if v.form == nil {
		return res, true, nil
	}
	if err := v.form.check(from, answer); err != nil {
		return res, true, err
	}
	res.Structured = answer
	return res, true, nil
}
