package main

import (
	"errors"
	"slices"
)

// A failure ends a comparison, or the work of a child process. check and get raise it as a
// panic, and attempt returns it as an error.
type failure struct{ error }

// check raises a failure if err is not nil.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// get returns v, or raises a failure if err is not nil.
func get[T any](v T, err error) T {
	check(err)
	return v
}

// attempt runs do and returns the failure that it raised. A goroutine that can fail needs its
// own call of attempt.
func attempt(do func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			err = v.error
		default:
			panic(v)
		}
	}()
	do()
	return nil
}

// cleanup registers a function that runs when the comparison has ended.
func (b *bench) cleanup(do func() error) { b.cleanups = append(b.cleanups, do) }

// measure runs do and then the functions that it registered, the latest first.
func (b *bench) measure(do func()) error {
	errs := []error{attempt(do)}
	for _, clean := range slices.Backward(b.cleanups) {
		errs = append(errs, clean())
	}
	b.cleanups = nil
	return errors.Join(errs...)
}
