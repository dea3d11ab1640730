package agent

import (
	"errors"
	"io/fs"
)

// Completed reads what a call left, whoever made it and whatever became of them. It
// reports whether the call is finished: then the error is what Call would have returned.
// Otherwise the result holds what is known, the session above all; it is not an error
// that there is no output, or only a part of one.
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

// verdict judges what an agent said: the same way when it has just ended and when
// somebody comes back to its file.
type verdict struct {
	name   string
	files  Files
	form   *schema
	reader *reader
	exit   *Exit // nil: its end was not seen
}

func (v *verdict) origin(res Result) Origin {
	return Origin{Agent: v.name, Session: res.Session, Output: v.files.Output, Log: v.files.Log}
}

// pass gives the result, whether the call is finished, and then what failed.
func (v *verdict) pass() (Result, bool, error) {
	res, failed := v.reader.stream.result(v.reader.lines.rest)
	res.Exit = v.exit
	answer := res.Structured
	res.Structured = nil // until it was held against the schema
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
