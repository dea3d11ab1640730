package main

import (
	"errors"
	"slices"
	"time"
)

// A side does the work of one side of a comparison n times.
type side func(n int)

// times returns a side that repeats one piece of work.
func times(do func()) side {
	return func(n int) {
		for range n {
			do()
		}
	}
}

// slicesPerRound is how often the sides take turns within a round.
const slicesPerRound = 7

// race measures several sides in turns and returns the time of one piece of
// work, in nanoseconds, by side and turn. A slice of one side lasts about
// slice, at least one piece. A median over the turns is not affected by a turn
// in which other programs used the processor.
func (b *bench) race(slice time.Duration, sides ...side) [][]float64 {
	pieces := make([]int, len(sides))
	for i, do := range sides {
		pieces[i] = calibrate(slice, do)
	}
	out := make([][]float64, len(sides))
	for turn := range b.rounds * slicesPerRound {
		for k := range sides {
			i := (k + turn) % len(sides) // no side always goes first
			began := monotonic()
			sides[i](pieces[i])
			out[i] = append(out[i], float64(monotonic()-began)/float64(pieces[i]))
		}
	}
	return out
}

// calibrate finds how many pieces fill a slice, and warms the side up. It uses the fastest of
// a few tries, because other programs may have interrupted the slower ones.
func calibrate(slice time.Duration, do side) int {
	const tries = 3
	for n := 1; ; n *= 2 {
		fastest := time.Duration(0)
		for range tries {
			began := time.Now()
			do(n)
			took := time.Since(began)
			if fastest == 0 || took < fastest {
				fastest = took
			}
			if took < slice/8 {
				break // there are too few pieces for a decision
			}
		}
		if fastest >= slice/4 {
			return max(1, int(float64(n)*float64(slice)/float64(fastest)))
		}
	}
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func mean(list []float64) (sum float64) {
	for _, v := range list {
		sum += v / float64(len(list))
	}
	return sum
}

// ratios divides turn by turn, because neighboring slices ran under the same load.
func ratios(over, under []float64) []float64 {
	out := make([]float64, len(over))
	for i := range over {
		out[i] = over[i] / under[i]
	}
	return out
}

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

// attempt runs the function do and returns the failure that it raised. A goroutine that can fail
// needs its own call of attempt.
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

// measure runs the function do and then the functions that it registered, the latest first.
func (b *bench) measure(do func()) error {
	errs := []error{attempt(do)}
	for _, clean := range slices.Backward(b.cleanups) {
		errs = append(errs, clean())
	}
	b.cleanups = nil
	return errors.Join(errs...)
}
