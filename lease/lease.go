package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

// Dir is where leases lie by default, from the root of a codebase, and Default the one
// for a whole run of tidy.
const (
	Dir     = ".autonomous_runs/.locks"
	Default = Dir + "/tidy" + suffix
	suffix  = ".lock"
)

// DefaultTimeout is how long a caller waits for a lease who has no reason for
// something else.
const DefaultTimeout = 30 * time.Second

// Options of a Lease. Begin with Defaults: a TTL of zero is a lease that expires at
// once.
type Options struct {
	Owner     string        // who holds it, as others see it
	TTL       time.Duration // how long it lasts without being renewed
	Grace     time.Duration // after its expiry, before it is broken; of somebody else's lease
	Heartbeat time.Duration // how often Keep renews, at least; a third of the TTL where that is shorter
	Shared    bool          // to read beside other readers
	PID       int           // the process that others are shown; 0: this one

	// Settle is how long a lease must stand that was taken by breaking another one,
	// before it counts. Another breaker may have judged the old file at the same time,
	// and remove ours in its place.
	Settle time.Duration

	// Note is told what a person should know and no error says: a lease that was broken,
	// a renewal that failed and will be tried again. Nil: nobody.
	Note func(string)

	Clock func() Reading // nil: this host's
	Disk  durable.Disk   // nil: the operating system's
}

// Defaults are the numbers of the policy for sweeps over a codebase.
func Defaults() Options {
	p := lockkeeper.Policies()["tidy"]
	return Options{TTL: p.TTL, Grace: p.Grace, Heartbeat: p.Heartbeat, Settle: 100 * time.Millisecond}
}

// Metrics is what a lease cost its holder.
type Metrics struct {
	AcquiredIn time.Duration `json:"acquired_in_ns"` // from asking to holding
	Attempts   int           `json:"attempts"`
	Renewals   int           `json:"renewals"`
	Failures   int           `json:"failures"` // renewals that failed
}

// Lease is one lease file as one holder uses it.
type Lease struct {
	path string
	opt  Options

	mu      sync.Mutex
	token   string // empty: it is not held
	metrics Metrics
}

// New is a lease that nobody holds yet.
func New(path string, opt Options) *Lease {
	if opt.Clock == nil {
		opt.Clock = systemClock()
	}
	if opt.Disk == nil {
		opt.Disk = durable.OSDisk{}
	}
	if opt.Note == nil {
		opt.Note = func(string) {}
	}
	opt.PID = cmp.Or(opt.PID, os.Getpid())
	return &Lease{path: path, opt: opt}
}

// Resume is a lease that somebody else took, perhaps another process, who handed on
// its token.
func Resume(path, token string, opt Options) *Lease {
	l := New(path, opt)
	l.token = token
	return l
}

// Path is the lease file's.
func (l *Lease) Path() string { return l.path }

// Token proves who holds the lease; empty while nobody does.
func (l *Lease) Token() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token
}

// Metrics is what the lease has cost so far.
func (l *Lease) Metrics() Metrics {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.metrics
}

// How soon is asked again after the first time, and how seldom in the end.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// Acquire takes the lease, and asks again until timeout is past. It answers a
// *HeldError when somebody else has it all the time. A timeout of zero asks once.
func (l *Lease) Acquire(ctx context.Context, timeout time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.check(); err != nil {
		return err
	}
	began := time.Now()
	token, pause := newToken(), firstPause
	for l.metrics.Attempts = 1; ; l.metrics.Attempts++ {
		by, err := l.attempt(ctx, token, began, timeout)
		if err != nil {
			return err
		}
		waited := time.Since(began)
		if by == nil {
			l.token, l.metrics.AcquiredIn = token, waited
			return nil
		}
		if waited >= timeout {
			return &HeldError{Path: l.path, Owner: l.opt.Owner, By: *by, Waited: waited, Attempts: l.metrics.Attempts}
		}
		// Different for everybody, so that those who were refused together do not all
		// come back together.
		if err := wait(ctx, min(pause/2+rand.N(pause), timeout-waited)); err != nil {
			return err
		}
		pause = min(2*pause, lastPause)
	}
}

// longestName bounds the names of owners and phases: the guard has to hold those of many
// readers, and the lease file has to be readable as one.
const longestName = 4 << 10

func (l *Lease) check() error {
	wrong := func(field, value, reason string) error {
		return &lockkeeper.InputError{Field: field, Value: value, Reason: reason}
	}
	_, err := nameOf(l.path)
	switch {
	case err != nil:
		return err
	case l.token != "":
		return &lockkeeper.RefusedError{Act: "lease " + l.path, Reason: "this very holder has it", Next: "renew it, or release it first"}
	case l.opt.Owner == "":
		return wrong("owner", "", "empty, and others could not see who holds the lease")
	case len(l.opt.Owner) > longestName:
		return wrong("owner", l.opt.Owner, fmt.Sprintf("longer than %d bytes", longestName))
	case l.opt.TTL < 0:
		return wrong("ttl", l.opt.TTL.String(), "negative")
	case l.opt.Grace < 0:
		return wrong("grace", l.opt.Grace.String(), "negative")
	}
	return nil
}

// attempt tries once. by is who is in the way; nil: the lease is taken.
func (l *Lease) attempt(ctx context.Context, token string, began time.Time, timeout time.Duration) (by *Info, err error) {
	broke := false
	try := func() error {
		return l.guarded(ctx, timeout-time.Since(began), func(at *visit) (err error) {
			by, broke, err = at.take(l.stayFrom(at.now, token), began)
			return err
		})
	}
	if err = try(); errors.Is(err, errNoPlace) {
		if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
			return nil, fmt.Errorf("lease %s: %w", l.path, err)
		}
		err = try()
	}
	if err != nil || !broke || by != nil {
		return by, err
	}
	if err = wait(ctx, l.opt.Settle); err == nil {
		err = l.guarded(ctx, 0, func(at *visit) error {
			if hold := at.guard.Held; hold != nil && at.found.carries(hold.Token) && hold.find(token) >= 0 {
				return nil
			}
			by = at.info()
			return at.forget(token)
		})
	}
	if err != nil {
		err = errors.Join(err, l.giveBack(context.WithoutCancel(ctx), token))
	}
	return by, err
}

// stayFrom is this holder's part in the lease, from now on.
func (l *Lease) stayFrom(now Reading, token string) stay {
	begin, end := term(now.Wall, l.opt.TTL)
	return stay{
		payload: payload{Owner: l.opt.Owner, Token: token, PID: l.opt.PID, CreatedAt: begin, ExpiresAt: end, RenewedAt: begin},
		At:      now, TTL: l.opt.TTL,
	}
}

// wait passes time unless ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Renew gives the lease its whole time again. A *LostError says that somebody else
// has it by now, or that it is gone: what is there is left as it is. Any other error
// leaves the lease as it was, for as long as it lasts.
func (l *Lease) Renew(ctx context.Context) error { return l.Phase(ctx, "") }

// Phase is Renew at the beginning of a phase of the work, whose name others are
// shown; an empty one leaves the name as it is.
func (l *Lease) Phase(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.token == "":
		return l.notHeld("renewal")
	case len(name) > longestName:
		return &lockkeeper.InputError{Field: "phase", Value: name, Reason: fmt.Sprintf("longer than %d bytes", longestName)}
	}
	err := l.guarded(ctx, 0, func(at *visit) error { return at.renew(l.token, l.opt, name) })
	if errors.Is(err, errNoPlace) {
		err = &LostError{Path: l.path, Now: Info{Path: l.path, State: Free}}
	}
	if err != nil {
		l.metrics.Failures++
		return err
	}
	l.metrics.Renewals++
	return nil
}

// Release gives the lease back. It removes nothing that is not its own, and answers
// whether it removed, or changed, the file: not when there was nothing to give back, as
// when it is called again, nor when the file was not its own any more. That others of
// ours had waited for this holder all the same is then told to Options.Note.
func (l *Lease) Release(ctx context.Context) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == "" {
		return false, nil
	}
	var released bool
	err := l.guarded(ctx, 0, func(at *visit) (err error) {
		held, _ := at.part(l.token)
		if released, err = at.release(l.token); err == nil && held != nil && !released {
			at.note(fmt.Sprintf("the lease %s was given back, and %s", l.path, at.left(held)))
		}
		return err
	})
	if errors.Is(err, errNoPlace) {
		err = nil
	}
	if err == nil {
		l.token = ""
	}
	return released, err
}

// giveBack releases a lease that was taken and not handed out.
func (l *Lease) giveBack(ctx context.Context, token string) error {
	return l.guarded(ctx, 0, func(at *visit) error {
		_, err := at.release(token)
		return err
	})
}

func (l *Lease) notHeld(act string) error {
	return &lockkeeper.RefusedError{Act: act + " of lease " + l.path, Reason: "it is not held", Next: "acquire it first"}
}

// guarded does something about the lease file while nobody of ours does.
func (l *Lease) guarded(ctx context.Context, patience time.Duration, do func(*visit) error) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	p, err := openPlace(l.opt.Disk, l.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	g, err := enter(ctx, p.beside(), patience)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.dropUnused(g, err), g.leave()) }()
	at := &visit{place: p, guard: g, now: l.opt.Clock(), grace: l.opt.Grace, owner: l.opt.Owner, shared: l.opt.Shared, note: l.opt.Note}
	if at.found, err = p.look(p.name); err != nil {
		return err
	}
	return do(at)
}
