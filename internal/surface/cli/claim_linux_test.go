package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/project/projecttest"
)

const bookSettings = `locks_file: .locks/locks.json
resources:
  Chapter_{nn}:
    files:
      - Manuscript/Chapters/Chapter_{nn}/
  StyleSystem:
    files: [Manuscript/Style/Style_Guide.md]
`

// newBook returns a console in a book project.
func newBook(t *testing.T, more string) *console {
	t.Helper()
	d := newConsole(t)
	d.env = append(d.env, "NO_COLOR=1", "PATH="+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(d.dir, "lockkeeper.yaml"), []byte(bookSettings+more), 0o644); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *console) locksFile() string { return filepath.Join(d.dir, ".locks", "locks.json") }

// foreign writes a claim of another tool to the claims file.
func (d *console) foreign(resource, instance string, age time.Duration) {
	d.t.Helper()
	text := fmt.Sprintf(`{"locks": [{"resource": %q, "timestamp": %q, "instance": %q}]}`, resource, time.Now().Add(-age).UTC().Format(time.RFC3339), instance)
	if err := os.MkdirAll(filepath.Dir(d.locksFile()), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.locksFile(), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// forget discards the output of the terminal.
func (d *console) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shown.Reset()
}

// past discards the output up to and including a text.
func (d *console) past(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, rest, _ := strings.Cut(d.shown.String(), text)
	d.shown.Reset()
	d.shown.WriteString(rest)
}

// A talk is a text that the terminal shows, and the reaction to it: a typed line, a function, or both.
type talk struct {
	shown string
	typed string
	act   func()
}

// talking runs a command and reacts to its output in the order of talks.
func (d *console) talking(want int, talks []talk, args ...string) string {
	d.t.Helper()
	var typing sync.WaitGroup
	typing.Go(func() {
		for _, k := range talks {
			d.sees(k.shown)
			d.past(k.shown)
			if k.act != nil {
				k.act()
			}
			if k.typed != "" {
				io.WriteString(d.person, k.typed+"\n")
			}
		}
	})
	out := d.must(want, args...)
	typing.Wait()
	return out
}

// shows: LM-15 LM-18 LM-19 LM-45
func TestDialogAboutAFreshLock(t *testing.T) {
	d := newBook(t, "")
	d.foreign("Chapter_03", "CLI-12345", 3*time.Minute)
	d.must(3, "claim", "Chapter_03", "--instance", "CLI-2", "--on-conflict", "cancel")
	d.forget()
	var typing sync.WaitGroup
	typing.Go(func() {
		d.sees("Choose option (1-3): ")
		io.WriteString(d.person, "9\n") // not one of the choices
		d.sees("9\r\n\r\nChoose option (1-3): ")
		io.WriteString(d.person, "2\n")
	})
	d.must(3, "claim", "Chapter_03", "--instance", "CLI-2")
	typing.Wait()
	shown := d.sees("canceled; nothing was claimed or changed")
	for _, fact := range []string{
		"⚠️ Chapter_03 is currently locked by another instance.", "- Resource: Chapter_03", "(3 minutes ago)", "- Instance: CLI-12345", "- State: working",
		"1. Wait for lock to clear (checks every 5 seconds)", "2. Cancel operation", "3. Override lock (not recommended)",
	} {
		if !strings.Contains(shown, fact) {
			t.Errorf("the person was not told %q:\n%s", fact, shown)
		}
	}

	// After an unsuccessful wait, the command offers to cancel or to override.
	d.forget()
	d.talking(3, []talk{
		{shown: "Choose option (1-3): ", typed: "1"},
		{shown: "Chapter_03 is still locked after "},
		{shown: "1. Cancel operation\r\n2. Override lock (not recommended)\r\n"},
		{shown: "Choose option (1-2): ", typed: "1"},
	}, "claim", "Chapter_03", "--instance", "CLI-2", "--poll", "20ms", "--patience", "1s")

	// The other holder releases the claim during a wait.
	d.forget()
	out := d.talking(0, []talk{
		{shown: "Choose option (1-3): ", typed: "1"},
		{shown: "Waiting for Chapter_03", act: func() {
			if err := os.WriteFile(d.locksFile(), []byte(`{"locks": []}`), 0o644); err != nil {
				t.Error(err)
			}
		}},
	}, "claim", "Chapter_03", "--instance", "CLI-2", "--poll", "20ms")
	if !strings.Contains(out, "claimed by CLI-2: Chapter_03") {
		t.Errorf("answered %q", out)
	}
}

// A lock younger than 15 minutes whose process is gone offers all three options, and marks the one to choose. So
// does a lock whose process ends during a wait.
//
// shows: LM-15 LM-56
func TestDialogAboutAFreshLockWhoseProcessIsGone(t *testing.T) {
	d := newBook(t, "")
	const recommended = "3. Override lock (recommended: its instance is gone)"
	self := filepath.Join(t.TempDir(), projecttest.Lockkeeper)
	own, err := os.Executable()
	projecttest.Must(t, err, os.Symlink(own, self))
	holder := exec.Command(self, "claim", "Chapter_04", "--instance", "CLI-1", "--", "sh", "-c", "echo held; read end")
	holder.Dir, holder.Env = d.dir, append(os.Environ(), d.env...)
	in, err := holder.StdinPipe()
	projecttest.Must(t, err)
	defer in.Close()
	out, err := holder.StdoutPipe()
	projecttest.Must(t, err, holder.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	kill := func() {
		if err := holder.Process.Kill(); err != nil {
			t.Error(err)
		}
		holder.Wait()
	}
	d.talking(0, []talk{
		{shown: "3. Override lock (not recommended)"},
		{shown: "Choose option (1-3): ", typed: "1"},
		{shown: "Waiting for Chapter_04", act: kill},
		{shown: "⚠️ Chapter_04 is currently locked by another instance."},
		{shown: "- State: gone, its process is dead"},
		{shown: "This lock may be from a crashed instance."},
		{shown: "1. Wait for lock to clear (checks every"},
		{shown: "2. Cancel operation"},
		{shown: recommended},
		{shown: "Choose option (1-3): ", typed: "3"},
	}, "claim", "Chapter_04", "--instance", "CLI-2", "--poll", "20ms")
	d.sees("CLI-1 lost Chapter_04")
}

// shows: LM-15 LM-17 LM-53 CF-16
func TestDialogOverridesAFreshLock(t *testing.T) {
	d := newBook(t, "")
	chapter := filepath.Join(d.dir, "Manuscript/Chapters/Chapter_03/Chapter_03.md")
	git := func(args ...string) { t.Helper(); gittest.Run(t, d.dir, args...) }
	writes := func(text string) {
		t.Helper()
		if err := os.WriteFile(chapter, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(chapter), 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	writes("Call me Ishmael.\n")
	git("add", "Manuscript")
	git("commit", "-qm", "one")
	d.must(0, "claim", "Chapter_03", "StyleSystem", "--instance", "CLI-1", "--reason", "opening")
	writes("Call me Ishmael, please.\nSome years ago.\n")
	out := d.talking(0, []talk{{shown: "3. Override lock (not recommended)"}, {shown: "Choose option (1-3): ", typed: "3"}}, "claim", "Chapter_03", "--instance", "CLI-2")
	if !strings.Contains(out, "claimed by CLI-2: Chapter_03") {
		t.Errorf("answered %q", out)
	}
	d.sees("note: CLI-1 lost Chapter_03, StyleSystem; its uncommitted changes are kept, see lockkeeper rescue list: Manuscript/Chapters/Chapter_03/Chapter_03.md")
	if list := d.must(0, "rescue", "list"); !strings.Contains(list, "Chapter_03.md") {
		t.Errorf("nothing was kept:\n%s", list)
	}
	// The second dialog shows the facts of the holder that overrode the first.
	d.forget()
	d.talking(3, []talk{{shown: "Choose option (1-3): ", typed: "2"}}, "claim", "Chapter_03", "--instance", "CLI-3")
	d.forget()
	var typing sync.WaitGroup
	typing.Go(func() {
		shown := d.sees("Choose option (1-3): ")
		for _, fact := range []string{"- Person: ada", "Uncommitted changes", "Chapter_03.md: 5 words added, 1 removed", "Ishmael, please."} {
			if !strings.Contains(shown, fact) {
				t.Errorf("the person was not told %q:\n%s", fact, shown)
			}
		}
		io.WriteString(d.person, "2\n")
	})
	d.must(3, "claim", "Chapter_03", "--instance", "CLI-3")
	typing.Wait()
}

// shows: LM-16 GP-41
func TestLockThatTurnsStaleWhileWaitedFor(t *testing.T) {
	// The lease must be long enough that the question appears before the lock is stale, even on a busy machine.
	d := newBook(t, "policies:\n  author:\n    ttl: 10s\n    heartbeat: 1s\n")
	d.foreign("Chapter_05", "CLI-12345", 0)
	var typing sync.WaitGroup
	typing.Go(func() {
		d.sees("Choose option (1-3): ")
		io.WriteString(d.person, "1\n")
		shown := d.sees("Choose option (1-2): ")
		for _, fact := range []string{"⚠️ Chapter_05 has a stale lock", "- Instance: CLI-12345", "- State: gone", "This lock may be from a crashed instance.", "1. Override stale lock and continue", "2. Cancel operation"} {
			if !strings.Contains(shown, fact) {
				t.Errorf("the person was not told %q:\n%s", fact, shown)
			}
		}
		io.WriteString(d.person, "1\n")
	})
	d.must(0, "claim", "Chapter_05", "--instance", "CLI-2", "--poll", "50ms")
	typing.Wait()
	if text, err := os.ReadFile(d.locksFile()); err != nil || strings.Contains(string(text), "CLI-12345") || !strings.Contains(string(text), "CLI-2") {
		t.Errorf("the file has %s, %v", text, err)
	}
}

// If the instance of a stale lock still runs, the dialog does not mention a crash, and it shows the configured
// time. An override that kept no changes does not mention a copy.
//
// shows: LM-16
func TestDialogAboutALivingInstanceThatIsStale(t *testing.T) {
	d := newBook(t, "policies:\n  author:\n    ttl: 2s\n    heartbeat: 1s\n")
	d.must(0, "claim", "Chapter_01", "--instance", "CLI-1")
	for status := ""; !strings.Contains(status, "Stale Locks (2 seconds and more):"); status = d.must(0, "claim", "status") {
		if strings.Contains(status, "gone") {
			t.Fatal(status)
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.forget()
	var typing sync.WaitGroup
	typing.Go(func() {
		shown := d.sees("Choose option (1-2): ")
		for _, fact := range []string{"has a stale lock (older than 2 seconds)", "- State: idle (still open), its process is alive", "Its instance still runs"} {
			if !strings.Contains(shown, fact) {
				t.Errorf("the person was not told %q:\n%s", fact, shown)
			}
		}
		if strings.Contains(shown, "crashed") {
			t.Errorf("a living instance is said to have crashed:\n%s", shown)
		}
		io.WriteString(d.person, "1\n")
	})
	d.must(0, "claim", "Chapter_01", "--instance", "CLI-2")
	typing.Wait()
	if shown := d.sees("when you are done"); !strings.Contains(shown, "note: CLI-1 lost Chapter_01\r\n") || strings.Contains(shown, "rescue") {
		t.Errorf("nothing was kept, and it says:\n%s", shown)
	}
}

// The command asks about two conflicts one after the other. If the person cancels at the second, the first
// holder keeps its claim.
//
// shows: LM-19 CF-5 GP-40
func TestCancelAtTheSecondLeavesTheFirst(t *testing.T) {
	d := newBook(t, "")
	d.must(0, "claim", "Chapter_01", "--instance", "CLI-1")
	d.must(0, "claim", "Chapter_02", "--instance", "CLI-2")
	d.talking(3, []talk{{shown: "Choose option (1-3): ", typed: "3"}, {shown: "Choose option (1-3): ", typed: "2"}},
		"claim", "Chapter_01", "Chapter_02", "--instance", "CLI-3")
	status := d.must(0, "claim", "status")
	if !strings.Contains(status, "Chapter_01: Locked 0 minutes ago by CLI-1") || strings.Contains(status, "CLI-3") {
		t.Errorf("afterwards:\n%s", status)
	}
}

// The command asks no question if an agent runs it on a terminal.
//
// shows: CF-14
func TestAgentAnswersNoDialog(t *testing.T) {
	d := newBook(t, "")
	d.must(0, "claim", "Chapter_01", "--instance", "CLI-1")
	d.env = append(d.env, "CLAUDECODE=1")
	d.must(3, "claim", "Chapter_01", "--instance", "CLI-2")
	if shown := d.sees("nothing was claimed"); strings.Contains(shown, "Choose option") {
		t.Errorf("an agent was asked:\n%s", shown)
	}
}
