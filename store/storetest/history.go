package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/lock"
)

// An Op is one operation of a concurrent history, as its client saw it. The client writes it
// twice, at the call and at the return, so that the history has operations during which the
// client was killed.
type Op struct {
	Client int               `json:"client"`
	Number int               `json:"number"` // number of the operation, rising for each client
	Kind   string            `json:"kind"`   // try, release, renew, upgrade
	Part   int               `json:"part"`   // operations of different parts never use the same path
	Grant  string            `json:"grant"`  // a name, unique in the history
	Locks  []lockkeeper.Lock `json:"locks,omitempty"`
	Call   int64             `json:"call"` // nanoseconds on a clock that all clients share
	Return int64             `json:"return,omitempty"`
	Answer string            `json:"answer,omitempty"` // ok, blocked, gone; empty if unknown
	Fence  uint64            `json:"fence,omitempty"`
}

// parts is the number of independent parts of a history. It is small, so that clients conflict.
const parts = 3

// RunClient performs random operations and writes its history to w as lines of JSON, without
// buffering. Clients of one history have different numbers. Leases must outlive the history,
// because it has no operation for an expiry.
func RunClient(ctx context.Context, m *lock.Manager, client, ops int, seed uint64, w io.Writer) error {
	c := historian{m: m, rnd: rand.New(rand.NewPCG(seed, uint64(client))), client: client, w: json.NewEncoder(w)}
	for range ops {
		if err := c.operate(ctx); err != nil {
			return err
		}
	}
	return nil
}

type historian struct {
	m      *lock.Manager
	rnd    *rand.Rand
	client int
	number int
	w      *json.Encoder
	held   []kept
}

// kept is a grant that the client got and may have released.
type kept struct {
	op Op
	g  *lock.Grant
}

func (c *historian) operate(ctx context.Context) error {
	c.number++
	op := Op{Client: c.client, Number: c.number, Grant: fmt.Sprintf("%d-%d", c.client, c.number)}
	kind := c.rnd.IntN(10)
	if len(c.held) == 0 || kind < 4 {
		return c.try(ctx, op)
	}
	i := c.rnd.IntN(len(c.held))
	k := c.held[i]
	op.Grant, op.Part, op.Locks = k.op.Grant, k.op.Part, nil
	switch {
	case kind < 5:
		op.Kind = "renew"
		return c.record(&op, func() error { _, err := c.m.Renew(ctx, k.g.ID, k.g.Token); return err })
	case kind < 7:
		op.Kind = "upgrade"
		path := k.op.Locks[c.rnd.IntN(len(k.op.Locks))].Path
		op.Locks = write(path)
		return c.record(&op, func() error { _, err := c.m.Upgrade(ctx, k.g.ID, k.g.Token, path); return err })
	}
	if c.rnd.IntN(4) > 0 { // otherwise keep the grant, to test its use after the release
		c.held = slices.Delete(c.held, i, i+1)
	}
	op.Kind = "release"
	return c.record(&op, func() error {
		released, err := c.m.Release(ctx, k.g.ID, k.g.Token)
		if err == nil && !released {
			err = &lockkeeper.NotHeldError{GrantID: k.g.ID}
		}
		return err
	})
}

func (c *historian) try(ctx context.Context, op Op) error {
	op.Kind, op.Part = "try", c.rnd.IntN(parts)
	top := fmt.Sprint("p", op.Part)
	paths := []string{top, top + "/a", top + "/a/x", top + "/b"}
	c.rnd.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, p := range paths[:1+c.rnd.IntN(2)] {
		op.Locks = append(op.Locks, locks(lockkeeper.Read+lockkeeper.Mode(c.rnd.IntN(3)), lockkeeper.Node+lockkeeper.Kind(c.rnd.IntN(2)), []string{p})...)
	}
	op.Locks = lockkeeper.Normalize(op.Locks)
	return c.record(&op, func() error {
		g, err := c.m.TryAcquire(ctx, lockkeeper.Request{Holder: op.Grant, Policy: "dal", Locks: op.Locks})
		if err == nil {
			op.Fence = g.Fence
			c.held = append(c.held, kept{op, g})
		}
		return err
	})
}

func (c *historian) record(op *Op, act func() error) error {
	op.Call = monotonic()
	if err := c.w.Encode(op); err != nil {
		return err
	}
	err := act()
	op.Return = monotonic()
	switch code := lockkeeper.CodeOf(err); {
	case err == nil:
		op.Answer = "ok"
	case code == lockkeeper.CodeBlocked:
		op.Answer = "blocked"
	case code == lockkeeper.CodeNotHeld:
		op.Answer = "gone"
	case code == lockkeeper.CodeRefused:
		op.Answer = "refused"
	default:
		return fmt.Errorf("%s %v: %w", op.Kind, op.Locks, err)
	}
	return c.w.Encode(op)
}

// ReadHistory reads the history of a client. It ignores a truncated last line, and keeps the
// call of an operation without an answer.
func ReadHistory(r io.Reader) ([]Op, error) {
	var ops []Op
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var op Op
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			if lines.Scan() {
				return nil, fmt.Errorf("history: %w", err)
			}
			return ops, nil
		}
		if n := len(ops); n > 0 && ops[n-1].Number == op.Number {
			ops[n-1] = op
		} else {
			ops = append(ops, op)
		}
	}
	return ops, lines.Err()
}

// monotonic reads a clock that all processes of the host share and that cannot be set.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // the clock exists on every Linux
	}
	return now.Nano()
}
