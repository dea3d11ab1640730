package durabletest

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"lockkeeper/durable"
)

// ErrCrashed is the error of every operation after a crash.
var ErrCrashed = errors.New("crashed")

// An Op names an operation of durable.Ops or durable.Disk.
type Op string

// These are the operations of both durable.Ops and durable.Disk.
const (
	Write Op = "write"
	Chmod Op = "chmod"
	Sync  Op = "sync"
	Close Op = "close"
	Mkdir Op = "mkdir"
)

// A FaultPlan counts operations and decides which of them fail. Its zero value fails none.
// Faults and FaultyDisk embed it for the operations on open files, which they share.
type FaultPlan struct {
	// At, if set, is called before every operation with its number, so that a test can
	// stop or end the process there. It must be set before the first operation.
	At func(k int, op Op)

	mu      sync.Mutex
	trace   []Op
	fails   map[int]error
	next    map[Op][]error
	crashes bool
	crashAt int
	real    durable.OS
}

// FailAt makes operation number k fail, counting all operations from 0.
func (p *FaultPlan) FailAt(k int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails == nil {
		p.fails = map[int]error{}
	}
	p.fails[k] = err
}

// FailNext makes the next operations of one kind fail.
func (p *FaultPlan) FailNext(op Op, times int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = map[Op][]error{}
	}
	p.next[op] = append(p.next[op], slices.Repeat([]error{err}, times)...)
}

// CrashAt makes operation number k and all later ones return ErrCrashed and do
// nothing.
func (p *FaultPlan) CrashAt(k int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crashes, p.crashAt = true, k
}

// Trace lists the operations attempted so far.
func (p *FaultPlan) Trace() []Op {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.trace)
}

// begin records an operation. It returns its planned error and whether the process
// had not crashed when it began.
func (p *FaultPlan) begin(op Op) (alive bool, err error) {
	k, alive, err := p.number(op)
	if p.At != nil {
		p.At(k, op)
	}
	return alive, err
}

// do runs an operation unless it fails as planned.
func do[T any](p *FaultPlan, op Op, real func() (T, error)) (result T, err error) {
	if _, err := p.begin(op); err != nil {
		return result, err
	}
	return real()
}

func (p *FaultPlan) do(op Op, real func() error) error {
	_, err := do(p, op, func() (any, error) { return nil, real() })
	return err
}

func (p *FaultPlan) number(op Op) (k int, alive bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k = len(p.trace)
	p.trace = append(p.trace, op)
	if p.crashes && k >= p.crashAt {
		return k, k == p.crashAt, ErrCrashed
	}
	if err := p.fails[k]; err != nil {
		return k, true, err
	}
	if queue := p.next[op]; len(queue) > 0 {
		p.next[op] = queue[1:]
		return k, true, queue[0]
	}
	return k, true, nil
}

func (p *FaultPlan) Write(file *os.File, data []byte) error {
	alive, err := p.begin(Write)
	if err == nil {
		return p.real.Write(file, data)
	}
	if alive {
		return errors.Join(err, p.real.Write(file, data[:len(data)/2]))
	}
	return err
}

func (p *FaultPlan) Chmod(file *os.File, perm fs.FileMode) error {
	return p.do(Chmod, func() error { return p.real.Chmod(file, perm) })
}

func (p *FaultPlan) Sync(file *os.File) error {
	return p.do(Sync, func() error { return p.real.Sync(file) })
}

// Close always closes the descriptor, as the
// kernel does for a failed close and for a dead process.
func (p *FaultPlan) Close(file *os.File) error {
	_, err := p.begin(Close)
	return errors.Join(err, p.real.Close(file))
}
