package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/surface/cli"
	"lockkeeper/internal/surface/cli/term"
)

// A write prints only the number of the landing to a program. A person sees the outcome of the file.
func TestWrittenToProgramsAndPeople(t *testing.T) {
	d := newConsole(t)
	grant := d.must(0, "lock", "acquire", "--holder", "otter", "--write", "app/models/a.rb")
	write := func(content string, out *os.File) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "content")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		io := &term.IO{In: in, Out: out, Err: d.tty, Dir: d.dir, Env: d.env, Now: time.Now}
		if code := cli.Main(context.Background(), io, []string{"gate", "write", "--grant", grant, "app/models/a.rb"}); code != 0 {
			t.Fatalf("ended with %d", code)
		}
	}
	answer, err := os.Create(filepath.Join(t.TempDir(), "answer"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Close()
	write("one", answer)
	text, err := os.ReadFile(answer.Name())
	if err != nil {
		t.Fatal(err)
	}
	number := strings.TrimSpace(string(text))
	if strings.Trim(number, "0123456789") != "" || number == "" {
		t.Errorf("a program got %q", text)
	}
	d.sees("landing " + number + ": 1 landed")
	write("two", d.tty)
	d.sees("landed     app/models/a.rb")
}

// For a copy of the codebase, the output has the differing files and the number of unchanged
// ones. With -v it has every file.
func TestUnchangedFilesAreCounted(t *testing.T) {
	d := newConsole(t)
	copied := t.TempDir()
	for _, in := range []string{d.dir, copied} {
		for i := range 20 {
			path := filepath.Join(in, "lib", fmt.Sprintf("f%02d.rb", i))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("same"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	grant := d.must(0, "lock", "acquire", "--holder", "otter", "--write", "app/models/a.rb")
	args := []string{"gate", "apply", "--grant", grant, "--from", copied}
	if out := d.must(0, args...); strings.Contains(out, "lib/f") {
		t.Errorf("a program got %q", out)
	}
	if out := d.must(0, append(args, "-v")...); strings.Count(out, "unchanged  lib/") != 20 {
		t.Errorf("with -v a program got %q", out)
	}
	io := &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: d.env, Now: time.Now}
	if code := cli.Main(context.Background(), io, args); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	if shown := d.sees("nothing landed: 20 unchanged"); strings.Contains(shown, "lib/f") {
		t.Errorf("a person saw %q", shown)
	}
}
