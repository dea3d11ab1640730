package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/sched"
)

// documents opens the documents of a flow in the console's root.
func (d *console) documents(f flow.Flow) *progress.Tracker {
	return progress.Open(progress.Options{Documents: documents.Open(filepath.Join(d.dir, ".pipeline")), Screens: documents.Open(filepath.Join(d.dir, ".analysis")), Flow: f})
}

var check = projecttest.Must

// audited advances units until their items need decisions.
func (d *console) audited(b *progress.Tracker, items map[string][]string) {
	d.t.Helper()
	for unit, words := range items {
		projecttest.Audited(d.t, b, unit, words...)
	}
}

// planned advances a unit with one item to an approved plan of one batch.
func (d *console) planned(b *progress.Tracker, unit string, targets ...string) {
	d.t.Helper()
	ctx := d.t.Context()
	d.audited(b, map[string][]string{unit: {"Fix it"}})
	check(d.t, b.Decide(ctx, unit, "ann", progress.Choice{Item: "i1", Decision: flow.Todo}),
		b.PutPlan(ctx, unit, []flow.Batch{{ID: "b1", Title: "Fix it", Items: []string{"i1"}, WriteTargets: targets, Effort: flow.Low}}, nil),
		b.ApprovePlan(ctx, unit, "ann"))
}

// verified advances the batch of a unit to a verified change.
func (d *console) verified(b *progress.Tracker, unit string, files []flow.File, gaps ...flow.Gap) {
	d.t.Helper()
	projecttest.Verified(d.t, b, unit, "b1", files, gaps...)
}

// kept stores the old and the new content of a file in a batch, and returns the change.
func (d *console) kept(b *progress.Tracker, unit, path, was, is string) flow.File {
	d.t.Helper()
	version := func(text string) lockkeeper.Version {
		sum, err := b.Keep(d.t.Context(), unit, "b1", strings.NewReader(text))
		check(d.t, err)
		return lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sum}
	}
	return flow.File{Path: path, Old: version(was), New: version(is)}
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// A person sees the diff of a batch before it lands, returns it for rework, and approves the next one.
//
// shows: PL-25 GP-25
func TestReviewByAPerson(t *testing.T) {
	d := newConsole(t)
	ctx := t.Context()
	b := d.documents(flow.Controllers())
	const unit = "blog/posts"
	d.planned(b, unit, "app/models/post.rb")
	first := d.kept(b, unit, "app/models/post.rb", "a\nb\nc\n", "a\nB \x1b[31m\nc\n")
	d.verified(b, unit, []flow.File{first})
	check(t, b.PutReview(ctx, unit, "b1", []flow.File{first}))

	wantText(t, d.must(0, "decide"), "review blog/posts/b1", "Fix it: app/models/post.rb")
	shown := d.must(0, "decide", "show", "review", "blog/posts/b1")
	wantText(t, shown, "summary: fixed", "verification: pass: fine", "--- a/app/models/post.rb", "\n-b\n+B ")
	var review struct{ Diff string }
	check(t, json.Unmarshal([]byte(d.must(0, "decide", "show", "blog/posts/b1", "--json")), &review))
	wantText(t, review.Diff, "+++ b/app/models/post.rb", "-b\n+B ")

	wait := d.keys("v", "q")
	d.must(0, "decide", "walk")
	wait()
	if onTerminal := d.sees("next:"); !strings.Contains(onTerminal, `+B \x1b[31m`) || strings.Contains(onTerminal, "B \x1b[31m") {
		t.Errorf("the terminal got %q", onTerminal)
	}

	d.sees(`lockkeeper decide return review blog/posts/b1 --note "…"`)
	d.must(2, "decide", "return", "review", "blog/posts/b1")
	wantText(t, d.must(0, "decide", "return", "blog/posts/b1", "--note", "keep b", "--note", "and c"), "review blog/posts/b1 is returned", "blog/posts continues with test")
	d.must(1, "decide", "approve", "review", "blog/posts/b1")
	d.sees("it was returned by ada")
	d.sees("list open decisions: lockkeeper decide")
	u, err := b.Unit(ctx, unit)
	check(t, err)
	if got := u.Batches[0].Review.Comments; !slices.Equal(got, []string{"keep b", "and c"}) {
		t.Errorf("comments %q", got)
	}

	second := d.kept(b, unit, "app/models/post.rb", "a\nb\nc\n", "a\nb\nc\nd\n")
	d.verified(b, unit, []flow.File{second}, flow.Gap{Path: "app/models/other.rb", Reason: "no write lock on it", Phase: "apply", Planned: "batch_plan", Rescue: "r1", At: time.Now().UTC()})
	check(t, b.PutReview(ctx, unit, "b1", []flow.File{second}))
	wantText(t, d.must(0, "decide", "approve", "blog/posts/b1"), "is approved: it lands as it was shown", "blog/posts continues with land")
	d.must(1, "decide", "undo", "review", "blog/posts/b1")
	d.sees("lockkeeper undo blog/posts/b1")

	// The gap of the batch is a separate decision.
	wantText(t, d.must(0, "decide"), "gap blog/posts/b1/1", "app/models/other.rb: no write lock on it")
	wantText(t, d.must(0, "decide", "show", "gap", "blog/posts/b1/1"), "kept: lockkeeper rescue show r1")
	wantText(t, d.must(0, "decide", "dismiss", "blog/posts/b1/1"), "gap blog/posts/b1/1 is dismissed")
	d.must(1, "decide", "follow-up", "blog/posts/b1/1")
	d.sees("lockkeeper decide undo gap blog/posts/b1/1")
	if shown := d.must(0, "decide", "show", "gap", "blog/posts/b1/1"); !strings.Contains(shown, "answer: dismissed, by ada") || strings.Contains(shown, "not known") {
		t.Errorf("shown:\n%s", shown)
	}
	d.must(0, "decide", "undo", "gap", "blog/posts/b1/1")
	wantText(t, d.must(0, "decide", "follow-up", "gap", "blog/posts/b1/1"), "is followed up by batch b2, which waits for approval: plan blog/posts")
	wantText(t, d.must(0, "decide", "show", "blog/posts"), "batch b2: Follow up gap b1/1: app/models/other.rb")
	d.must(0, "decide", "targets", "blog/posts/b2", "app/models/other.rb", "app/models/more.rb")
	d.must(0, "decide", "approve", "plan", "blog/posts")
	wantText(t, d.must(0, "audit", "--kind", "decided", "--json"), `"name":"ada`, "plan blog/posts is approved")
}

// Undoing a batch by name undoes exactly its landings, last first. After an interrupted undo, a second one
// completes it.
//
// shows: GP-18 GP-25
func TestUndoOfABatch(t *testing.T) {
	d := newConsole(t)
	ctx := t.Context()
	b := d.documents(flow.Controllers())
	const unit = "blog/posts"
	d.planned(b, unit, "app/models/a.rb")
	file := d.kept(b, unit, "app/models/a.rb", "1", "3")
	d.verified(b, unit, []flow.File{file})
	d.must(1, "undo", "blog/posts/b1")
	d.sees("none of its landings is in the tree")

	write := func(name, text string) {
		path := filepath.Join(d.dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(d.dir, name))
		check(t, err)
		return string(text)
	}
	write("app/models/a.rb", "1")
	write("app/models/b.rb", "1")
	grant := d.must(0, "lock", "acquire", "--holder", "runner", "--write", "app/models/a.rb", "--write", "app/models/b.rb")
	land := func(name, text string) uint64 {
		write("out/"+name, text)
		var landed struct {
			Landing uint64 `json:"landing"`
		}
		check(t, json.Unmarshal([]byte(d.must(0, "gate", "apply", "--grant", grant, "--from", "out", "--json")), &landed), os.RemoveAll(filepath.Join(d.dir, "out")))
		if landed.Landing == 0 {
			t.Fatal("no landing")
		}
		return landed.Landing
	}
	first, other, second := land("app/models/a.rb", "2"), land("app/models/b.rb", "2"), land("app/models/a.rb", "3")
	check(t, b.PutLanded(ctx, unit, "b1", flow.Landed{Landings: []uint64{first, second}, Grant: grant, Fence: 1, Commit: "abc123", Files: []flow.File{file}, At: time.Now().UTC()}))

	d.must(3, "undo", "blog/posts/b1")
	d.must(0, "lock", "release", grant)
	d.must(0, "undo", fmt.Sprint(second)) // the first part
	if got := read("app/models/a.rb"); got != "2" {
		t.Fatalf("a.rb is %q", got)
	}
	out := d.must(0, "undo", "blog/posts/b1")
	if strings.Count(out, "\n") != 0 || out == "" {
		t.Errorf("answered %q, want the number of one landing", out)
	}
	d.sees("batch blog/posts/b1 is undone, by 1 landing")
	d.sees("git commit -m 'Undo blog/posts/b1 (abc123)' -- app/models/a.rb")
	if a, b := read("app/models/a.rb"), read("app/models/b.rb"); a != "1" || b != "2" {
		t.Errorf("a.rb is %q, b.rb is %q (landing %d was not to be undone)", a, b, other)
	}
	d.must(1, "undo", "blog/posts/b1")
	d.sees("it was undone by ada")
	d.must(2, "undo", "blog/posts/b9")
	wantText(t, d.must(0, "decide", "show", "blog/posts/b1"), "undone: by ada", "commit: abc123", fmt.Sprintf(", landing %d, landing %d\n", first, second))
	wantText(t, d.must(0, "decide", "redo", "blog/posts/b1", "apply"), "repeats the phase apply", "blog/posts continues with apply")
}

// Failed work can be retried with a note for its agent.
//
// shows: GP-25 GP-26
func TestRetryOfWhatFailed(t *testing.T) {
	d := newConsole(t)
	ctx := t.Context()
	b := d.documents(flow.Controllers())
	const unit = "blog/posts"
	d.planned(b, unit, "app/models/a.rb")
	a, err := project.Open(ctx, project.Settings{Dir: d.dir, Env: projecttest.Lookup(d.env)})
	check(t, err)
	defer func() { check(t, a.Close()) }()
	q, err := job.Open(a)
	check(t, err)
	ended := make(chan lockkeeper.Item, 3)
	w, err := q.Start(ctx, sched.WorkerOptions{Slots: 3, Node: "here", Roots: []string{"flow/controllers"}, OnEnd: func(it lockkeeper.Item) { ended <- it },
		Run: func(context.Context, *sched.Job) error { return errors.New("it was \x1b[31mred") }})
	check(t, err)
	by := lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}
	u, err := b.Unit(ctx, unit)
	check(t, err)
	_, err = q.Enqueue(ctx,
		sched.ItemSpec{Key: "controllers/blog%2Fposts/batch/b1@" + u.Batches[0].Digest[:8], Workflow: "blog/posts/b1", Unit: "batch", Phase: "apply", Root: "flow/controllers", By: by},
		sched.ItemSpec{Key: "controllers/shop/analyze", Workflow: "shop", Unit: "controller", Phase: "analyze", Root: "flow/controllers", By: by},
		sched.ItemSpec{Key: "elsewhere", Workflow: "blog/posts/b1", Unit: "batch", Phase: "apply", By: by})
	check(t, err)
	for range 3 {
		if it := <-ended; it.Status != lockkeeper.ItemError {
			t.Fatalf("%s is %s", it.ID, it.Status)
		}
	}
	check(t, w.Close())

	listed := d.must(0, "decide")
	wantText(t, listed, "2 failed", "blog/posts/b1", "shop", `it was \x1b[31mred`)
	if strings.Contains(listed, "\x1b") {
		t.Errorf("an escape code was shown: %q", listed)
	}
	d.must(2, "decide", "retry", "blog/post/b1")
	d.sees("did you mean blog/posts/b1?")
	wantText(t, d.must(0, "decide", "retry", "blog/posts", "--note", "the fixtures moved"), "retries blog/posts/b1 in phase apply")
	u, err = b.Unit(ctx, unit)
	check(t, err)
	apply, _ := flow.Controllers().Phase("apply")
	if notes := u.Notes("b1", apply); len(notes) != 1 || notes[0].Text != "the fixtures moved" {
		t.Errorf("notes %+v", notes)
	}
	wantText(t, d.must(0, "decide"), "1 failed", "shop")
	if jobs := d.must(0, "job", "list", "--status", "queued"); !strings.Contains(jobs, "blog/posts/b1") {
		t.Errorf("queued:\n%s", jobs)
	}
}

// A person can exclude a screen from the merge of a controller.
//
// shows: SW-29
func TestScreenIsExcluded(t *testing.T) {
	d := newConsole(t)
	check(t, os.WriteFile(filepath.Join(d.dir, "screens.json"), []byte(`{"screens": [{"name": "Post List", "module": "blog", "controller": "posts", "primary_action": "index", "secondary_actions": [], "reads_from": []}]}`), 0o644))
	exclude := []string{"decide", "exclude", "blog/posts", "Post List", "--flow", "screens"}
	d.must(2, exclude...)
	wantText(t, d.must(0, append(exclude[:6:6], "--note", "it is rewritten")...), "plan blog/posts excludes screen Post List")
	d.must(1, append(exclude[:6:6], "--note", "again")...)
	d.must(2, "decide", "exclude", "blog/posts", "Post Lst", "--note", "x", "--flow", "screens")
	d.sees("did you mean blog/posts/Post List?")
	s, err := d.documents(flow.Screens()).Screen(t.Context(), "blog", "posts", "Post List")
	check(t, err)
	if s.Excluded == nil || s.Excluded.Reason != "it is rewritten" {
		t.Errorf("screen %+v", s)
	}
	d.must(0, append(exclude[:6:6], "--undo")...)
	for _, flow := range []string{"controllers", "tasks", ""} { // without a run, controllers is the default
		d.must(2, append(exclude[:4:4], "--flow", flow, "--note", "x")...)
		d.sees("this flow has no screens")
	}
}

// typed is the input that a person types once the terminal has shown a text a number of times.
type typed struct {
	text  string
	times int
	keys  string
}

// types types each input in turn.
func (d *console) types(list ...typed) (wait func()) {
	var typing sync.WaitGroup
	typing.Go(func() {
		for _, one := range list {
			d.seesOften(one.text, one.times)
			io.WriteString(d.person, one.keys)
		}
	})
	return typing.Wait
}

// keys types keys, each when the terminal asks for one.
func (d *console) keys(keys ...string) (wait func()) {
	var list []typed
	for n, key := range keys {
		list = append(list, typed{"q quit?", n + 1, key})
	}
	return d.types(list...)
}

// seesOften waits until the terminal has shown a text a number of times.
func (d *console) seesOften(text string, times int) {
	late := time.After(hung)
	for {
		d.mu.Lock()
		n := strings.Count(d.shown.String(), text)
		d.mu.Unlock()
		if n >= times {
			return
		}
		select {
		case <-d.grown:
		case <-late:
			d.t.Errorf("the terminal showed %q %d times, not %d", text, n, times)
			return
		}
	}
}

// A person can answer open decisions one by one with single keys.
//
// shows: PL-19 PL-25
func TestWalk(t *testing.T) {
	d := newConsole(t)
	ctx := t.Context()
	b := d.documents(flow.Controllers())
	d.audited(b, map[string][]string{"blog/posts": {"Paginate the index", "Full \x1b[2Jtext search"}, "shop/orders": {"paginate the index!"}})
	check(t, b.PutAnalysis(ctx, "admin/posts", flow.Analysis{Purpose: "p", Behaviour: "b", Files: []string{}, Topics: []flow.Topic{{Prompt: "Which tables?"}}}, nil))
	decision := func(unit, item string) flow.Decision {
		u, err := b.Unit(ctx, unit)
		check(t, err)
		i, _ := u.Item(item)
		return i.Decision
	}

	// Items with the same text come first, because they unblock the most. An unknown key prints help, an undo
	// reopens both items, and the walk continues.
	wait := d.keys("x", "t", "u", "d", "v", "r", "q")
	out := d.must(0, "decide", "walk")
	wait()
	if out != "3 answered, 0 skipped" {
		t.Errorf("answered %q", out)
	}
	shown := d.sees("more waits")
	wantText(t, shown, "r  reject: never: the item is not proposed again", "shop/orders/i1 will be done", "is open again", `Full \x1b[2Jtext search`)
	if strings.Contains(shown, "\x1b[2J") {
		t.Error("what an agent wrote cleared the terminal")
	}
	for ref, want := range map[[2]string]flow.Decision{{"blog/posts", "i1"}: flow.Defer, {"shop/orders", "i1"}: flow.Defer} {
		if got := decision(ref[0], ref[1]); got != want {
			t.Errorf("%v is %q", ref, got)
		}
	}

	// An answer that needs a note asks for it, and an empty note is refused. A skipped decision stays open.
	d.mu.Lock()
	d.shown.Reset()
	d.mu.Unlock()
	check(t, b.Decide(ctx, "shop/orders", "ann", progress.Choice{Item: "i1", Was: flow.Defer}))
	const ask = "Type why it needs no answer"
	wait = d.types(typed{"q quit?", 1, "s"}, typed{"q quit?", 2, "r"}, typed{ask, 1, "\n"}, typed{"q quit?", 3, "r"}, typed{ask, 2, "we know\n"})
	if out := d.must(0, "decide", "walk"); out != "1 answered, 1 skipped" {
		t.Errorf("answered %q", out)
	}
	wait()
	d.sees("no more decisions")
	u, err := b.Unit(ctx, "admin/posts")
	check(t, err)
	if topic := u.Topics[0]; topic.State != progress.Rejected || topic.Text != "we know" {
		t.Errorf("topic %+v", topic)
	}
	if got := decision("shop/orders", "i1"); got != "" {
		t.Errorf("what was skipped is %s", got)
	}
}
