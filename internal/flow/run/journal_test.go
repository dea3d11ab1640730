package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/run"
)

// leave writes the files of a call or a check.
func leave(t *testing.T, dir, purpose string, n int, files map[string]string) string {
	t.Helper()
	at := filepath.Join(dir, documents.KeyName(purpose), fmt.Sprint(n))
	must(t, os.MkdirAll(at, 0o700))
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(at, name+".new"), []byte(text), 0o600), os.Rename(filepath.Join(at, name+".new"), filepath.Join(at, name)))
	}
	return at
}

// The journal tells the wait for a slot from the work in it, also of calls of earlier versions.
func TestJournalKnowsWaits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "calls")
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	set := func(at string, times map[string]time.Duration) {
		t.Helper()
		for name, d := range times {
			must(t, os.Chtimes(filepath.Join(at, name), noon.Add(d), noon.Add(d)))
		}
	}
	const m = time.Minute
	set(leave(t, dir, "controllers/a/analyze", 1, map[string]string{"item": "j1", "workspace": "", "output": "", "asked": noon.Format(time.RFC3339Nano)}), map[string]time.Duration{"workspace": 2 * m, "output": 3 * m})
	set(leave(t, dir, "controllers/a/extract", 1, map[string]string{"item": "j1", "workspace": "", "output": ""}), map[string]time.Duration{"workspace": 4 * m, "output": 5 * m})
	set(leave(t, dir, "controllers/a/b1/test@12345678", 1, map[string]string{"item": "j2", "workspace": "", "output": "", "check.json": `{"took": 60000000000}`}), map[string]time.Duration{"workspace": 6 * m, "output": 8 * m, "check.json": 9 * m})
	set(leave(t, dir, "controllers/a/b1/test@12345678", 2, map[string]string{"item": "j2", "workspace": "", "output": ""}), map[string]time.Duration{"workspace": 10 * m, "output": 11 * m})
	j := run.OpenJournal(dir)
	for range 2 { // the second time from the cache
		list, err := j.All("controllers")
		must(t, err)
		got := ""
		for _, e := range list {
			asked := "-"
			if !e.Asked.IsZero() {
				asked = fmt.Sprint(e.Asked.Sub(noon).Minutes())
			}
			got += fmt.Sprintf("%s %s %v %v %v; ", e.Phase, asked, e.Began.Sub(noon).Minutes(), e.Ended.Sub(noon).Minutes(), e.Checked)
		}
		if want := "analyze 0 2 3 false; extract - 4 5 false; test 6 8 9 true; test - 10 11 false; "; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A journal that is read repeatedly sees new calls, ended calls and removed calls.
func TestJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "calls")
	j := run.OpenJournal(dir)
	calls := func(flow string) int {
		t.Helper()
		list, err := j.Calls(flow)
		must(t, err)
		fresh, err := run.OpenJournal(dir).Calls(flow)
		must(t, err)
		if len(list) != len(fresh) {
			t.Errorf("%d calls are known, and %d are there", len(list), len(fresh))
		}
		return len(list)
	}
	if n := calls("controllers"); n != 0 {
		t.Errorf("%d calls in a folder that is not there", n)
	}
	begun := map[string]string{"item": "j1", "workspace": "/x"}
	call := `{"agent": "claude", "phase": "analyze", "cost_usd": 0.5, "unit": "blog/posts", "run": "r1"}`
	first := leave(t, dir, "controllers/blog/posts/analyze", 1, begun)
	leave(t, dir, "screens/blog/posts/Index/analyze", 1, map[string]string{"call.json": call})
	leave(t, dir, "research/blog/posts/paging", 1, map[string]string{"call.json": call}) // belongs to the flow controllers
	must(t, os.Mkdir(filepath.Join(dir, "unknown"), 0o700), os.Mkdir(filepath.Join(dir, documents.KeyName("controllers/blog/posts/analyze"), "x"), 0o700))
	if n := calls("controllers"); n != 1 {
		t.Errorf("%d calls have ended", n)
	}
	entries, err := j.All("controllers")
	must(t, err)
	if len(entries) != 1 || entries[0].Item != "j1" || entries[0].Call != nil || !entries[0].Cut || entries[0].Work != "blog/posts" || entries[0].Phase != "analyze" {
		t.Errorf("the entries are %+v", entries)
	}
	if path, _, err := entries[0].Said(); path != "" || err != nil {
		t.Errorf("it said something: %s, %v", path, err)
	}
	leave(t, dir, "controllers/blog/posts/analyze", 1, map[string]string{"log": "thinking", "call.json": call})
	if n := calls("controllers"); n != 2 {
		t.Errorf("%d calls have ended", n)
	}
	if path, at, err := entries[0].Said(); filepath.Dir(path) != first || time.Since(at) > hung || err != nil {
		t.Errorf("it said nothing: %s at %s, %v", path, at, err)
	}
	leave(t, dir, "controllers/blog/posts/analyze", 2, begun)
	leave(t, dir, "controllers/blog/posts/b1/test@12345678", 1, map[string]string{"item": "j2", "workspace": "", "output": "ok"})
	if entries, err = j.All("controllers"); err != nil || len(entries) != 3 {
		t.Fatalf("the entries are %+v, %v", entries, err)
	}
	check := entries[2]
	if path, _, err := check.Said(); !check.IsCheck() || check.Call != nil || filepath.Base(path) != "output" || err != nil {
		t.Errorf("the check is %+v: %s, %v", check, path, err)
	}
	must(t, os.RemoveAll(filepath.Dir(first)))
	if n := calls("controllers"); n != 1 {
		t.Errorf("%d calls are left", n)
	}
	leave(t, dir, "controllers/blog/posts/extract", 1, map[string]string{"call.json": "{"})
	if list, err := j.Calls("controllers"); err == nil || len(list) != 1 {
		t.Errorf("with a record that cannot be read: %d calls, %v", len(list), err)
	}
}

// A call that ended without output says what its program wrote to standard error, such as why it
// could not start. A call that runs does not, because its output may still come.
func TestACallWithoutOutputSaysItsErrors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "calls")
	said := func() string {
		t.Helper()
		entries, err := run.OpenJournal(dir).All("controllers")
		must(t, err)
		path, _, err := entries[0].Said()
		must(t, err)
		return filepath.Base(path)
	}
	leave(t, dir, "controllers/blog/posts/analyze", 1, map[string]string{"item": "j1", "workspace": "/x", "log": "", "stderr": "no login"})
	if got := said(); got != "log" {
		t.Errorf("a running call says %s", got)
	}
	leave(t, dir, "controllers/blog/posts/analyze", 1, map[string]string{"call.json": `{"agent": "claude", "phase": "analyze", "unit": "blog/posts", "run": "r1"}`})
	if got := said(); got != "stderr" {
		t.Errorf("a call that failed says %s", got)
	}
	leave(t, dir, "controllers/blog/posts/analyze", 1, map[string]string{"log": "thinking"})
	if got := said(); got != "log" {
		t.Errorf("a call with output says %s", got)
	}
}
