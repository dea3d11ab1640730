package progress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lockkeeper/internal/flow"
)

// A dying is a context that ends after a number of checks. Work under it stops between two of its
// operations, like a process that dies there.
type dying struct {
	context.Context
	mu   sync.Mutex
	left int
	done chan struct{}
}

var errDied = errors.New("died")

func dieAfter(ctx context.Context, n int) *dying {
	return &dying{Context: ctx, left: n, done: make(chan struct{})}
}

func (d *dying) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left == 0 {
		close(d.done)
	}
	if d.left <= 0 {
		return errDied
	}
	return nil
}

func (d *dying) Done() <-chan struct{} { return d.done }

// died reports whether an act stopped early. Any other error fails the test.
func died(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, errDied) && !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "died") {
		t.Fatal(err)
	}
	return err != nil
}

// state returns the relevant state of a unit as one text, without times.
func state(t *testing.T, b *Tracker, unit string) string {
	t.Helper()
	u := b.see(t, unit)
	s := fmt.Sprintln(u.Phase(), u.Status(), u.NeedsRecovery(), told(t, b, unit))
	for _, i := range u.Items {
		s += fmt.Sprintln(i.ID, i.Decision, i.Added)
	}
	for _, batch := range u.Batches {
		s += fmt.Sprintln(batch.ID, batch.Approved, batch.Next, batch.WriteTargets)
		for _, g := range batch.Gaps() {
			s += fmt.Sprintln(g.Path, g.Answer)
		}
	}
	return s + strings.Join(slices.DeleteFunc(files(t, b.documents.Dir()), func(f string) bool { return strings.Contains(f, "previous") }), "\n")
}

// content returns the names and contents of all files on disk.
func content(t *testing.T, b *Tracker) (all string) {
	t.Helper()
	for _, f := range files(t, b.documents.Dir()) {
		all += f + "\n" + string(get[[]byte](t)(os.ReadFile(filepath.Join(b.documents.Dir(), f))))
	}
	return all
}

// A crash anywhere in an act leaves it undone, or lets Recover or the same act complete it.
// shows: PL-19 PL-66 PL-85 GP-21
func TestCrashBetweenAnyTwoWrites(t *testing.T) {
	choose := func(choices ...Choice) func(context.Context, *Tracker) error {
		return func(ctx context.Context, b *Tracker) error { return b.Decide(ctx, unit, "ann", choices...) }
	}
	for _, c := range []struct {
		name   string
		states int // the number of states between its writes
		before func(t *testing.T, b *Tracker)
		act    func(ctx context.Context, b *Tracker) error
	}{
		{"decide the last", 3, func(t *testing.T, b *Tracker) {
			bring(t, b, unit, "audit")
			ok(t, choose(Choice{Item: "i1", Decision: flow.Todo}, Choice{Item: "i2", Decision: flow.Reject})(t.Context(), b))
		}, choose(Choice{Item: "i3", Decision: flow.Defer})},
		{"change", 3, func(t *testing.T, b *Tracker) { bring(t, b, unit, "decide") }, choose(Choice{Item: "i3", Was: flow.Defer, Decision: flow.Reject})},
		{"undo", 3, func(t *testing.T, b *Tracker) { bring(t, b, unit, "decide") }, choose(Choice{Item: "i3", Was: flow.Defer})},
		{"follow up", 1, func(t *testing.T, b *Tracker) { withGaps(t, b) }, func(ctx context.Context, b *Tracker) error {
			_, err := b.FollowUpGap(ctx, unit, "b1", 1, "the change", "ann")
			return err
		}},
		{"approve a follow-up", 1, func(t *testing.T, b *Tracker) {
			withGaps(t, b)
			get[string](t)(b.FollowUpGap(t.Context(), unit, "b1", 1, "the change", "ann"))
		}, func(ctx context.Context, b *Tracker) error { return b.ApprovePlan(ctx, unit, "ann") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := newBook(t)
			c.before(t, whole)
			done, _ := copied(t, whole)
			ok(t, c.act(t.Context(), done))
			want := state(t, done, unit)
			states, last := 0, content(t, whole)
			for n := 1; ; n++ {
				b, _ := copied(t, whole)
				if !died(t, c.act(dieAfter(t.Context(), n), b)) {
					break
				}
				now := content(t, b)
				if now == last {
					continue // nothing was written since the previous death
				}
				states, last = states+1, now
				settled, _ := copied(t, b)
				ok(t, settled.Recover(t.Context(), unit))
				u := settled.see(t, unit)
				if u.NeedsRecovery() || len(u.Malformed) > 0 {
					t.Fatalf("death %d: %s, malformed %v", n, state(t, settled, unit), u.Malformed)
				}
				ok(t, settled.Recover(t.Context(), unit))
				if got := state(t, settled, unit); got == want {
					continue // the act was already complete
				}
				if err := c.act(t.Context(), b); err != nil {
					t.Fatalf("death %d: and then %v", n, err)
				}
				if got := state(t, b, unit); got != want {
					t.Fatalf("death %d leads to\n%s\nwant\n%s", n, got, want)
				}
			}
			if states < c.states {
				t.Errorf("died in %d states, there are at least %d", states, c.states)
			}
		})
	}
}

// shows: PL-78 GP-22
func TestManyDecideAtOnce(t *testing.T) {
	b := newBook(t)
	const items, people = 12, 4
	manyItems(t, b, items)
	var all sync.WaitGroup
	won := make([][]string, people)
	for p := range people {
		all.Go(func() {
			for n := range items {
				id := fmt.Sprintf("i%d", (n*7+p*3)%items+1)
				// Each person chooses differently, so exactly one choice is stored.
				err := b.Decide(t.Context(), unit, fmt.Sprint("person ", p), Choice{Item: id, Decision: flow.Defer, Notes: fmt.Sprint(p)})
				switch {
				case err == nil:
					won[p] = append(won[p], id)
				case !strings.Contains(err.Error(), "it was decided as DEFER by person"):
					t.Errorf("%v", err)
				}
			}
		})
	}
	all.Wait()
	total := 0
	u := b.see(t, unit)
	for p, ids := range won {
		total += len(ids)
		for _, id := range ids {
			if item, _ := u.Item(id); item.By != fmt.Sprint("person ", p) {
				t.Errorf("%s was decided by %d and is by %s", id, p, item.By)
			}
		}
	}
	if total != items || u.Status() != flow.Complete {
		t.Errorf("%d of %d decisions, %s", total, items, u.Status())
	}
	if got := len(told(t, b, unit)); got != items {
		t.Errorf("later runs know %d", got)
	}
}

// manyItems brings a unit with n items to the phase decide.
func manyItems(t *testing.T, b *Tracker, n int) {
	t.Helper()
	ctx := t.Context()
	var e flow.Extract
	var s flow.Synthesis
	for i := range n {
		text := "Improve " + strings.Repeat("x", i+1)
		e.Items = append(e.Items, flow.Possible{Description: text})
		s.Items = append(s.Items, flow.Ready{ID: fmt.Sprintf("i%d", i+1), Description: text, Impact: flow.Low, Effort: flow.Low, Rationale: "r"})
	}
	none := analysis
	none.Topics = nil
	ok(t, b.PutAnalysis(ctx, unit, none, nil))
	ok(t, b.PutExtract(ctx, unit, e, nil))
	ok(t, b.PutSynthesis(ctx, unit, s, nil))
	ok(t, b.Audit(ctx, unit))
}

const deciderEnv = "DOSSIER_TEST_DECIDER"

// decider runs as a process that decides on the items whose ids it reads, and prints each stored
// one.
func decider() {
	dir, who, _ := strings.Cut(os.Getenv(deciderEnv), "|")
	b := bookIn(dir, flow.Controllers())
	b.now = time.Now
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		err := b.Decide(context.Background(), unit, who, Choice{Item: in.Text(), Decision: flow.Defer, Notes: who})
		if err == nil {
			fmt.Println(in.Text())
		} else if !strings.Contains(err.Error(), "it was decided as DEFER by") {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// Processes decide on the same items and are killed. Every decision that was acknowledged is
// stored with its author, and the unit continues.
// shows: PL-78 PL-85
func TestDecidersThatAreKilled(t *testing.T) {
	dir := t.TempDir()
	b := bookIn(dir, flow.Controllers())
	const items = 40
	manyItems(t, b, items)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	said := map[string]string{}
	for round := range 5 {
		var all sync.WaitGroup
		heard := make(chan [2]string, 2*items)
		for p := range 2 {
			who, order, enough := fmt.Sprintf("process %d.%d", round, p), random.Perm(items), 1+random.IntN(5)
			all.Go(func() {
				if err := decideInProcess(t.Context(), dir, who, order, enough, heard); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		close(heard)
		for one := range heard {
			said[one[0]] = one[1]
		}
		u := b.see(t, unit)
		for id, who := range said {
			if item, found := u.Item(id); !found || item.By != who {
				t.Errorf("round %d: %q was decided by %s and is by %q", round, id, who, item.By)
			}
		}
	}
	u := b.see(t, unit)
	if t.Logf("%d told, %d open", len(said), u.Open()); len(said) < 10 {
		t.Error("too few to mean anything")
	}
	for _, i := range u.Items {
		if i.Decision == "" {
			ok(t, b.Decide(t.Context(), unit, "ann", Choice{Item: i.ID, Decision: flow.Defer}))
		}
	}
	ok(t, b.Recover(t.Context(), unit))
	u = b.see(t, unit)
	if u.Status() != flow.Complete || len(told(t, b, unit)) != items {
		t.Errorf("%s, later runs know %d", u.Status(), len(told(t, b, unit)))
	}
	if left := files(t, u.folder.Dir()); slices.Contains(left, decisionsDraft) {
		t.Errorf("the draft is still there: %q", left)
	}
}

// decideInProcess starts a process that decides, and kills it after enough decisions.
func decideInProcess(ctx context.Context, dir, who string, order []int, enough int, heard chan<- [2]string) error {
	var ids strings.Builder
	for _, n := range order {
		ids.WriteString("i" + strconv.Itoa(n+1) + "\n")
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), deciderEnv+"="+dir+"|"+who)
	cmd.Stdin, cmd.Stderr = strings.NewReader(ids.String()), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		heard <- [2]string{lines.Text(), who}
		if n == enough {
			if err := cmd.Process.Kill(); err != nil {
				return err
			}
		}
	}
	err = cmd.Wait()
	if killed := (*exec.ExitError)(nil); errors.As(err, &killed) && !killed.Exited() {
		return nil
	}
	return err
}
