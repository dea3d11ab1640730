package sqlstore

import (
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// While a request waits, and while the lease of a grant lives, a server that is gone for some time ends neither: opening,
// acquiring, recording a process and releasing continue when it is back.
func TestPostgresGoneForSomeTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := c.ordinary()
	m := lock.New(s.store(t, Options{}), lock.Options{})
	var g *lock.Grant
	for _, step := range []struct {
		what string
		act  func() error
	}{
		{"opening", func() error {
			return store.Retry(t.Context(), time.Minute, func() error {
				st, err := s.open(t.Context(), Options{})
				if err != nil {
					return err
				}
				return st.Close()
			})
		}},
		{"acquiring", func() (err error) { g, err = m.Acquire(t.Context(), request("h", "a"), time.Minute); return err }},
		{"recording the process", func() error { return g.SetProcess(t.Context(), lockkeeper.Process{Host: "h", PID: 17}) }},
		{"releasing", func() error { return g.Release(t.Context()) }},
	} {
		c.kill()
		_, err := m.Requests(t.Context())
		if !lockkeeper.IsTemporary(err) {
			t.Fatalf("without a server: %v", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- step.act() }()
		select {
		case err := <-ended:
			t.Fatalf("%s ended without a server: %v", step.what, err)
		case <-time.After(300 * time.Millisecond):
		}
		c.start()
		if err := <-ended; err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
	}
	if list, err := m.Requests(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%d grants are left, %v", len(list), err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// A request that waits no longer than the server is gone says why it ended.
func TestPostgresGoneForTooLong(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := lock.New(c.ordinary().store(t, Options{}), lock.Options{})
	c.kill()
	began := time.Now()
	_, err := m.Acquire(t.Context(), request("h", "a"), 500*time.Millisecond)
	if took := time.Since(began); !lockkeeper.IsTemporary(err) || took < 500*time.Millisecond {
		t.Errorf("after %v: %v", took, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
