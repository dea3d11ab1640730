package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A refused claim suggests a step that helps. It does not suggest waiting if the holder is gone, or is the
// caller itself.
//
// shows: LM-19 CF-14
func TestBlockedClaimSaysWhatHelps(t *testing.T) {
	cancel := []string{"--instance", "CLI-2", "--on-conflict", "cancel"}
	for name, c := range map[string]struct {
		before []string
		gone   bool
		agent  bool
		code   int
		claim  []string
		shown  []string
	}{
		"held":    {before: []string{"Chapter_01", "--instance", "CLI-1"}, code: 3, claim: append([]string{"Chapter_01"}, cancel...), shown: []string{"Chapter_01 is claimed by CLI-1", "or --on-conflict wait"}},
		"reader":  {before: []string{"Chapter_01", "--read", "--instance", "CLI-1"}, code: 3, claim: append([]string{"Chapter_01"}, cancel...), shown: []string{"claimed for reading by CLI-1"}},
		"overlap": {before: []string{"Chapter_01", "--instance", "CLI-1"}, code: 3, claim: append([]string{"Manuscript/Chapters/Chapter_01/a.md"}, cancel...), shown: []string{"a.md overlaps Chapter_01, which is claimed by CLI-1"}},
		"waited": {before: []string{"Chapter_01", "--instance", "CLI-1"}, code: 4, claim: []string{"Chapter_01", "--instance", "CLI-2", "--on-conflict", "wait", "--patience", "20ms", "--poll", "10ms"},
			shown: []string{"or a longer --patience"}},
		"own":   {before: []string{"Chapter_01", "--read", "--instance", "CLI-2"}, code: 3, claim: append([]string{"Chapter_01"}, cancel...), shown: []string{"this session itself, CLI-2", "lockkeeper unclaim the overlapping resources"}},
		"gone":  {gone: true, code: 3, claim: append([]string{"Chapter_01"}, cancel...), shown: []string{"--on-conflict override-stale takes the claim over"}},
		"agent": {gone: true, agent: true, code: 3, claim: append([]string{"Chapter_01"}, cancel...), shown: []string{"tell the author", "lockkeeper claim clear"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newBook(t, "")
			if c.before != nil {
				d.must(0, append([]string{"claim"}, c.before...)...)
			}
			if c.gone {
				d.foreign("Chapter_01", "CLI-9", 20*time.Minute)
			}
			if c.agent {
				d.env = append(d.env, "CLAUDECODE=1")
			}
			d.must(c.code, append([]string{"claim"}, c.claim...)...)
			for _, text := range c.shown {
				d.sees(text)
			}
		})
	}
}

// After a claim with --instance, the suggested unclaim command releases that claim.
func TestAdvisedUnclaimNamesTheInstance(t *testing.T) {
	d := newBook(t, "")
	d.must(0, "claim", "Chapter_01", "--instance", "CLI-7")
	d.sees("lockkeeper unclaim Chapter_01 --instance CLI-7, when you are done")
	if out := d.must(0, "unclaim", "Chapter_01", "--instance", "CLI-7"); out != "released: Chapter_01" {
		t.Error(out)
	}
}

// A claim with a command ends with the command. An earlier unclaim prints a note, and releases all other claims.
//
// shows: LM-20
func TestUnclaimUnderACommand(t *testing.T) {
	d := newBook(t, "")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	d.must(0, "claim", "Chapter_02", "--instance", "CLI-1")
	var running sync.WaitGroup
	running.Go(func() {
		d.must(7, "claim", "Chapter_01", "--instance", "CLI-1", "--", "/bin/sh", "-c", "read line <"+pipe+"; exit 7")
	})
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // blocks until the command reads
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() // ends the command also after a failure
	if out := d.must(0, "unclaim", "--instance", "CLI-1"); out != "released: Chapter_02" {
		t.Error(out)
	}
	d.sees("Chapter_01 stays claimed until the command under the claim ends")
	if out := d.must(0, "unclaim", "Chapter_01", "--instance", "CLI-1"); out != "nothing was released" {
		t.Error(out)
	}
	if out := d.must(0, "why", "Chapter_01"); !strings.Contains(out, "CLI-1 holds write Manuscript/Chapters/Chapter_01") {
		t.Error(out)
	}
	w.Close()
	running.Wait()
	if out := d.must(0, "why", "Chapter_01"); !strings.HasPrefix(out, "Chapter_01 is free: ") {
		t.Error(out)
	}
}

// unclaim does not release a grant that another command acquired under the same name.
func TestUnclaimLeavesOtherGrants(t *testing.T) {
	d := newBook(t, "")
	grant := d.must(0, "lock", "acquire", "--holder", "CLI-1", "--write", "notes.md")
	if out := d.must(0, "unclaim", "--instance", "CLI-1"); out != "nothing was claimed by CLI-1" {
		t.Error(out)
	}
	d.must(0, "lock", "release", grant)
}

// If an invalid flag follows a name, the error is about the flag and not about the name.
func TestWrongFlagBehindAName(t *testing.T) {
	d := newBook(t, "")
	d.must(2, "claim", "Chapter_01", "--pateince", "1s")
	d.sees("did you mean --patience?")
	d.must(2, "claim", "Chapter_01", "--patience", "-1s")
	d.sees(`invalid argument "-1s" for "--patience" flag: negative`)
}

// A word that resembles a command is not claimed as a new file, unless it is written as a
// path.
func TestMistypedCommandIsNotClaimed(t *testing.T) {
	d := newConsole(t)
	for word, meant := range map[string]string{"stauts": "status", "Status": "status", "clera": "clear"} {
		d.must(2, "claim", word, "--instance", "CLI-1")
		d.sees("did you mean lockkeeper claim " + meant + "?")
	}
	d.must(0, "claim", "./stauts", "--instance", "CLI-1")
	if err := os.WriteFile(filepath.Join(d.dir, "clera"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d.must(0, "claim", "clera", "--instance", "CLI-1")
	d.must(0, "claim", "notes", "--instance", "CLI-1")
}
