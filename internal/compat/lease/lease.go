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

// Dir is the default directory of lease files, relative to the root of a codebase. Default
// is the lease file for a whole run of tidy.
const (
	Dir     = ".autonomous_runs/.locks"
	Default = Dir + "/tidy" + suffix
	suffix  = ".lock"
)

// DefaultTimeout is how long Acquire should wait unless the caller has a reason for
// another timeout.
const DefaultTimeout = 30 * time.Second

// Options configure a Lease. Start from Defaults: a TTL of zero expires immediately.
type Options struct {
	Owner     string        // the holder's name, shown to other processes
	TTL       time.Duration // how long the file lasts without renewal
	Grace     time.Duration // how long after another holder's expiry its file may be broken
	Heartbeat time.Duration // how often Keep renews, but at least every third of the TTL
	Shared    bool          // other readers may hold the lease at the same time
	PID       int           // the process that other processes see; 0: this one

	// BreakPause is how long a file acquired by breaking another one must exist before it
	// counts. A foreign tool may have judged the old file at the same time and remove
	// ours.
	BreakPause time.Duration

	// Note receives events that are not errors but that a person should see: a broken
	// file, or a failed renewal that will be retried. It may be nil.
	Note func(string)

	Clock func() Reading // nil means this host's clocks
	Disk  durable.Disk   // nil means the operating system's
}

// Defaults returns the values of the policy for sweeps over a codebase.
func Defaults() Options {
	p := lockkeeper.Policies()["tidy"]
	return Options{TTL: p.TTL, Grace: p.Grace, Heartbeat: p.Heartbeat, BreakPause: 100 * time.Millisecond}
}

// Metrics counts the time and the operations that a lease file cost its holder.
type Metrics struct {
	AcquiredIn time.Duration `json:"acquired_in_ns"` // time from the first attempt to the grant
	Attempts   int           `json:"attempts"`
	Renewals   int           `json:"renewals"`
	Failures   int           `json:"failures"` // failed renewals
}

// A Lease is one holder's use of a lease file.
type Lease struct {
	path string
	opt  Options

	mu      sync.Mutex
	token   string // empty while not held
	metrics Metrics
}

// New returns a Lease that is not held.
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

// Resume returns a Lease that is already held with token, perhaps acquired by another
// process.
func Resume(path, token string, opt Options) *Lease {
	l := New(path, opt)
	l.token = token
	return l
}

func (l *Lease) Path() string { return l.path }

// Token returns the secret that proves the hold, or "" while the lease is not held.
func (l *Lease) Token() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token
}

func (l *Lease) Metrics() Metrics {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.metrics
}

// The pause between attempts doubles from firstPause to lastPause.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// Acquire acquires the lease file and retries until timeout. It returns a *HeldError if
// another holder keeps the file that long. A timeout of zero tries once.
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
		// The wait is random, so that processes refused together do not all retry together.
		if err := wait(ctx, min(pause/2+rand.N(pause), timeout-waited)); err != nil {
			return err
		}
		pause = min(2*pause, lastPause)
	}
}

// maxNameLength bounds the names of owners and phases: the guard must have room for the names of
// many readers, and the lease file for one name.
const maxNameLength = 4 << 10

func (l *Lease) check() error {
	wrong := func(field, value, reason string) error {
		return &lockkeeper.InputError{Field: field, Value: value, Reason: reason}
	}
	_, err := nameOf(l.path)
	switch {
	case err != nil:
		return err
	case l.token != "":
		return &lockkeeper.RefusedError{Act: "lease file " + l.path, Reason: "this holder already holds it", Next: "renew it, or release it first"}
	case l.opt.Owner == "":
		return wrong("owner", "", "required: it tells other processes who holds the lease file")
	case len(l.opt.Owner) > maxNameLength:
		return wrong("owner", l.opt.Owner, fmt.Sprintf("longer than %d bytes", maxNameLength))
	case l.opt.TTL < 0:
		return wrong("ttl", l.opt.TTL.String(), "negative")
	case l.opt.Grace < 0:
		return wrong("grace", l.opt.Grace.String(), "negative")
	}
	return nil
}

// attempt tries once. It returns the conflicting holder, or nil if the file was acquired.
func (l *Lease) attempt(ctx context.Context, token string, began time.Time, timeout time.Duration) (by *Info, err error) {
	broke := false
	try := func() error {
		return l.guarded(ctx, timeout-time.Since(began), func(at *access) (err error) {
			by, broke, err = at.acquire(l.newMember(at.now, token), began)
			return err
		})
	}
	if err = try(); errors.Is(err, errNoDirectory) {
		if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
			return nil, fmt.Errorf("lease file %s: %w", l.path, err)
		}
		err = try()
	}
	if err != nil || !broke || by != nil {
		return by, err
	}
	if err = wait(ctx, l.opt.BreakPause); err == nil {
		err = l.guarded(ctx, 0, func(at *access) error {
			if hold := at.guard.Held; hold != nil && at.found.hasToken(hold.Token) && hold.find(token) >= 0 {
				return nil
			}
			by = at.info()
			return at.forget(token)
		})
	}
	if err != nil {
		err = errors.Join(err, l.guarded(context.WithoutCancel(ctx), 0, func(at *access) error {
			_, err := at.release(token)
			return err
		}))
	}
	return by, err
}

// newMember returns this holder as a member of a hold that starts or is renewed now.
func (l *Lease) newMember(now Reading, token string) member {
	begin, end := term(now.Wall, l.opt.TTL)
	return member{
		payload: payload{Owner: l.opt.Owner, Token: token, PID: l.opt.PID, CreatedAt: begin, ExpiresAt: end, RenewedAt: begin},
		At:      now, TTL: l.opt.TTL,
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Renew extends the lease by its whole TTL. A *LostError says that another holder has the
// file or that it is gone; the file is left as it is. After any other error the lease is
// still held until it expires.
func (l *Lease) Renew(ctx context.Context) error { return l.Phase(ctx, "") }

// Phase renews the lease at the start of a phase of the work. Other processes see the name
// of the phase. An empty name keeps the previous one.
func (l *Lease) Phase(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.token == "":
		return &lockkeeper.RefusedError{Act: "renewal of lease file " + l.path, Reason: "this holder does not hold it", Next: "acquire it first"}
	case len(name) > maxNameLength:
		return &lockkeeper.InputError{Field: "phase", Value: name, Reason: fmt.Sprintf("longer than %d bytes", maxNameLength)}
	}
	err := l.guarded(ctx, 0, func(at *access) error { return at.renew(l.token, l.opt, name) })
	if errors.Is(err, errNoDirectory) {
		err = &LostError{Path: l.path, Now: Info{Path: l.path, State: Free}}
	}
	if err != nil {
		l.metrics.Failures++
		return err
	}
	l.metrics.Renewals++
	return nil
}

// Release releases the lease and reports whether it removed or changed the file. It
// changes only its own file. If the file was gone or replaced, Release still ends the
// recorded hold, returns false and explains this to Options.Note.
func (l *Lease) Release(ctx context.Context) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == "" {
		return false, nil
	}
	var released bool
	err := l.guarded(ctx, 0, func(at *access) (err error) {
		held, _ := at.findHold(l.token)
		if released, err = at.release(l.token); err == nil && held != nil && !released {
			at.note(fmt.Sprintf("lease file %s was released, but %s", l.path, at.describeLeftFile(held)))
		}
		return err
	})
	if errors.Is(err, errNoDirectory) {
		err = nil
	}
	if err == nil {
		l.token = ""
	}
	return released, err
}

// guarded calls the function do while this process holds the guard of the lease file.
func (l *Lease) guarded(ctx context.Context, patience time.Duration, do func(*access) error) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	p, err := openLeaseFile(l.opt.Disk, l.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	g, err := acquireGuard(ctx, p.guardPath(), patience)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.dropUnused(g, err), g.release()) }()
	at := &access{leaseFile: p, guard: g, now: l.opt.Clock(), grace: l.opt.Grace, owner: l.opt.Owner, shared: l.opt.Shared, note: l.opt.Note}
	if at.found, err = p.inspect(p.name); err != nil {
		return err
	}
	return do(at)
}

// Keep renews the lease on a timer until stop is called. The context it returns ends with
// the lease. Its cause is a *LostError if another holder has the file, or another error if
// renewal failed for two thirds of the TTL. The remaining third is for stopping the work.
// Earlier failures are reported to Options.Note and retried.
func (l *Lease) Keep(ctx context.Context) (held context.Context, stop func()) {
	held, lose := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.keep(held, lose)
	}()
	return held, func() {
		lose(context.Canceled)
		<-ended
	}
}

// Interval returns how often Keep renews.
func (o Options) Interval() time.Duration {
	if o.Heartbeat > 0 {
		return max(min(o.Heartbeat, o.TTL/3), time.Millisecond)
	}
	return max(o.TTL/3, time.Millisecond)
}

func (l *Lease) keep(ctx context.Context, lose context.CancelCauseFunc) {
	last := time.Now()
	tick := time.NewTicker(l.opt.Interval())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tried := time.Now()
		err := l.Renew(ctx)
		var lost *LostError
		switch {
		case err == nil:
			last = tried
		case ctx.Err() != nil:
			return
		case errors.As(err, &lost):
			lose(lost)
			return
		case time.Since(last) >= l.opt.TTL*2/3:
			lose(fmt.Errorf("lease file %s could not be renewed for %s: %w", l.path, time.Since(last).Round(time.Second), err))
			return
		default:
			l.opt.Note("the lease file could not be renewed, retrying: " + err.Error())
		}
	}
}
