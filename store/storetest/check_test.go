package storetest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// The checks must be able to fail.

func TestCheckFindsWhatIsWrong(t *testing.T) {
	rec := func(ticket uint64, state store.State, ls []lockkeeper.Lock, change ...func(*store.Record)) *store.Record {
		r := &store.Record{Grant: lockkeeper.Grant{Holder: "h", Locks: ls}, Ticket: ticket, State: state}
		if state != store.StateWaiting {
			r.Fence = ticket
		}
		for _, c := range change {
			c(r)
		}
		return r
	}
	on := func(ticket uint64) func(*store.Record) {
		return func(r *store.Record) { r.WaitsOn = ticket }
	}
	held, waiting, promoted := store.StateHeld, store.StateWaiting, store.StatePromoted
	for _, c := range []struct {
		want string // empty for a valid space
		recs []*store.Record
	}{
		{"", []*store.Record{rec(1, held, write("a")), rec(2, held, write("b")), rec(3, waiting, write("a"), on(1)), rec(4, waiting, read("a"), on(3))}},
		{"both hold", []*store.Record{rec(1, held, write("a")), rec(2, promoted, read("a/b"))}},
		{"which does not exist", []*store.Record{rec(1, held, write("a")), rec(2, waiting, write("a"), on(7))}},
		{"which does not exist", []*store.Record{rec(2, waiting, write("a"))}},
		{"which does not conflict with it", []*store.Record{rec(1, held, write("b")), rec(2, waiting, write("a"), on(1))}},
		{"came later", []*store.Record{rec(1, waiting, write("a"), on(2)), rec(2, waiting, write("a"), on(1))}},
		{"is granted and waits on", []*store.Record{rec(1, held, write("a"), on(1))}},
		{"belongs to", []*store.Record{rec(1, held, write("a")), rec(2, held, write("b"), func(r *store.Record) { r.Fence = 1 })}},
		{"does not come after", []*store.Record{rec(2, held, write("a")), rec(2, held, write("b"), func(r *store.Record) { r.Fence = 1 })}},
		{"has fence", []*store.Record{rec(1, held, write("a")), rec(2, waiting, write("a"), on(1), func(r *store.Record) { r.Fence = 9 })}},
	} {
		err := checkRecords(c.recs)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestCheckHistories(t *testing.T) {
	try := func(client int, call, ret int64, fence uint64, answer string) Op {
		return Op{Client: client, Number: int(call), Kind: "try", Grant: string(rune('a' + client)), Locks: write("p0"), Call: call, Return: ret, Answer: answer, Fence: fence}
	}
	with := func(kind string, client int, call, ret int64, answer string) Op {
		return Op{Client: client, Number: int(call), Kind: kind, Grant: string(rune('a' + client)), Locks: write("p0"), Call: call, Return: ret, Answer: answer}
	}
	for name, c := range map[string]struct {
		ops []Op
		ok  bool
	}{
		"one after the other":        {[]Op{try(0, 1, 2, 1, "ok"), with("release", 0, 3, 4, "ok"), try(1, 5, 6, 2, "ok")}, true},
		"overlapping":                {[]Op{try(0, 1, 2, 1, "ok"), with("release", 0, 3, 6, "ok"), try(1, 4, 5, 2, "ok")}, true},
		"two writers":                {[]Op{try(0, 1, 2, 1, "ok"), try(1, 3, 4, 2, "ok")}, false},
		"blocked by no one":          {[]Op{try(0, 1, 2, 0, "blocked")}, false},
		"a fence that falls":         {[]Op{try(0, 1, 2, 9, "ok"), with("release", 0, 3, 4, "ok"), try(1, 5, 6, 2, "ok")}, false},
		"released twice":             {[]Op{try(0, 1, 2, 1, "ok"), with("release", 0, 3, 4, "ok"), with("release", 0, 5, 6, "ok")}, false},
		"renewed after release":      {[]Op{try(0, 1, 2, 1, "ok"), with("release", 0, 3, 4, "ok"), with("renew", 0, 5, 6, "gone")}, true},
		"a lost release, done":       {[]Op{try(0, 1, 2, 1, "ok"), with("release", 0, 3, 0, ""), try(1, 5, 6, 2, "ok")}, true},
		"a lost release, not done":   {[]Op{try(0, 1, 2, 1, "ok"), with("release", 0, 3, 0, ""), try(1, 5, 6, 0, "blocked")}, true},
		"a lost try, done":           {[]Op{try(0, 1, 0, 0, ""), try(1, 5, 6, 0, "blocked")}, true},
		"a lost try, not done":       {[]Op{try(0, 1, 0, 0, ""), try(1, 5, 6, 2, "ok")}, true},
		"a lost try cannot be early": {[]Op{try(1, 1, 2, 0, "blocked"), try(0, 3, 0, 0, "")}, false},
	} {
		if err := CheckHistories(c.ops, time.Minute); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadHistory(t *testing.T) {
	const whole = `{"client":1,"number":1,"kind":"try","call":5}
{"client":1,"number":1,"kind":"try","call":5,"return":6,"answer":"ok"}
{"client":1,"number":2,"kind":"release","call":7}
`
	for _, cut := range []string{"", `{"client":1,"num`} {
		ops, err := ReadHistory(bytes.NewBufferString(whole + cut))
		answers := []string{}
		for _, op := range ops {
			answers = append(answers, op.Kind+" "+op.Answer)
		}
		if err != nil || !slices.Equal(answers, []string{"try ok", "release "}) {
			t.Errorf("read %q, %v", answers, err)
		}
	}
	if _, err := ReadHistory(strings.NewReader("nonsense\n" + whole)); err == nil {
		t.Error("nonsense in the middle was read")
	}
}
