package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/surface/cli"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/rescue"
)

// Content of an agent is printed to a terminal without escape sequences, and to a program
// unchanged.
func TestRescuedContentCannotSpeakToTheTerminal(t *testing.T) {
	d := newConsole(t)
	grant := d.must(0, "lock", "acquire", "--holder", "otter", "--write", "app/models/a.rb")
	from := filepath.Join(t.TempDir(), "app", "models")
	if err := os.MkdirAll(from, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, "b.rb"), []byte("\tharmless\x1b[2J\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.must(5, "gate", "apply", "--grant", grant, "--from", filepath.Dir(filepath.Dir(from)))
	kept, err := os.ReadDir(filepath.Join(d.dir, ".lockkeeper", "rescue"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v, %v", kept, err)
	}
	id := kept[0].Name()
	if text := d.must(0, "rescue", "show", id); !strings.Contains(text, "+\tharmless\x1b[2J") {
		t.Errorf("a program got %q", text)
	}
	show := &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: d.env, Now: time.Now}
	if code := cli.Main(context.Background(), show, []string{"rescue", "show", id}); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	if seen := d.sees("harmless\\x1b[2J"); !strings.Contains(seen, "+\tharmless\\x1b[2J") || strings.Contains(seen, "\x1b[2J") {
		t.Errorf("a person saw %q", seen)
	}
}

// For what was moved aside, the output says where it is. Its note does not land as its content;
// if it is a directory, that lands.
func TestRescuedWhole(t *testing.T) {
	d := newConsole(t)
	shelf := rescue.Open(filepath.Join(d.dir, ".lockkeeper", "rescue"), rescue.Limits{})
	const note = "kept as it was in .lockkeeper/kept/20260131/1b4e28ba"
	e, err := shelf.Put(t.Context(), rescue.Entry{Kind: rescue.Whole, Path: "app/models/a.rb", Holder: "otter"}, strings.NewReader(note+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"whole of app/models/a.rb", "\n  " + note} {
		if text := d.must(0, "rescue", "show", e.ID); !strings.Contains(text, want) {
			t.Errorf("showed %q, want %q", text, want)
		}
	}
	d.sees("move it back by hand, under a lock on app/models/a.rb, or lockkeeper rescue drop " + e.ID)
	if text := d.must(0, "rescue", "show", e.ID, "--json"); !strings.Contains(text, `"note": "`+note+`"`) {
		t.Errorf("a program got %q", text)
	}
	for _, args := range [][]string{{"rescue", "land", "--json", e.ID}, {"rescue", "land", "--json", "--onto-current", e.ID}} {
		if text := d.must(2, args...); !strings.Contains(text, "it is a special file that was moved aside, or is gone") || !strings.Contains(text, "lockkeeper rescue show "+e.ID+" says where the content is") {
			t.Errorf("%v said %q", args, text)
		}
	}
	if _, err := os.Lstat(filepath.Join(d.dir, "app", "models", "a.rb")); !os.IsNotExist(err) {
		t.Errorf("something landed: %v", err)
	}
	if _, err := shelf.Get(e.ID); err != nil {
		t.Error(err)
	}

	kept := filepath.Join(d.dir, ".lockkeeper", "kept", "20260131", "1b4e28ba")
	if err := errors.Join(os.MkdirAll(kept, 0o755), os.WriteFile(filepath.Join(kept, "f"), []byte("new"), 0o644), os.MkdirAll(filepath.Join(d.dir, "app", "models"), 0o755)); err != nil {
		t.Fatal(err)
	}
	d.must(0, "rescue", "land", e.ID)
	if text, err := os.ReadFile(filepath.Join(d.dir, "app", "models", "a.rb", "f")); err != nil || string(text) != "new" {
		t.Errorf("landed %q, %v", text, err)
	}
	if _, err := shelf.Get(e.ID); err == nil {
		t.Error("it is still on the shelf")
	}
}

// Dropping is permanent, so the command asks a person.
func TestRescueDropAsks(t *testing.T) {
	d := newConsole(t)
	shelf := rescue.Open(filepath.Join(d.dir, ".lockkeeper", "rescue"), rescue.Limits{})
	e, err := shelf.Put(t.Context(), rescue.Entry{Kind: rescue.Gap, Path: "app/models/a.rb", Holder: "otter"}, strings.NewReader("mine\n"))
	if err != nil {
		t.Fatal(err)
	}
	d.agreeing("no", 1, "rescue", "drop", e.ID)
	if _, err := shelf.Get(e.ID); err != nil {
		t.Errorf("dropped against the answer: %v", err)
	}
	d.agreeing("y", 0, "rescue", "drop", e.ID)
	if _, err := shelf.Get(e.ID); err == nil {
		t.Error("still there")
	}
}

// An uncommitted file that a command removed is restored outside of the allowlist, too. A new
// file in its place is not overwritten, unless the caller asks for it.
func TestRescueRestoresUncommitted(t *testing.T) {
	d := newConsole(t)
	shelf := rescue.Open(filepath.Join(d.dir, ".lockkeeper", "rescue"), rescue.Limits{})
	file := filepath.Join(d.dir, "notes.txt")
	put := func(content string) string {
		e, err := shelf.Put(t.Context(), rescue.Entry{Kind: rescue.Uncommitted, Path: "notes.txt", Holder: "otter", Mode: 0o600}, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	holds := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("it holds %q, %v; want %q", got, err, want)
		}
	}
	id := put("first\n")
	if text := d.must(0, "rescue", "list"); !strings.Contains(text, "uncommitted") {
		t.Errorf("listed %q", text)
	}
	d.must(0, "rescue", "restore", id)
	holds("first\n")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	id = put("second\n")
	if text := d.must(0, "rescue", "show", id); !strings.Contains(text, "+second") || !strings.Contains(text, "-first") {
		t.Errorf("showed %q", text)
	}
	if text := d.must(5, "rescue", "restore", id, "--json"); !strings.Contains(text, "--onto-current") {
		t.Errorf("it said %q", text)
	}
	holds("first\n")
	d.must(0, "rescue", "restore", "--onto-current", id)
	holds("second\n")
	kept, err := shelf.List(t.Context())
	if err != nil || len(kept) != 1 { // the replaced content is kept
		t.Fatalf("%v %v", kept, err)
	}
	if text := d.must(0, "status"); !strings.Contains(text, "uncommitted: 1 file") {
		t.Errorf("status says %q", text)
	}
	d.must(0, "rescue", "restore", kept[0].ID)
	holds("first\n")
}
