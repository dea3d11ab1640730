package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"lockkeeper/internal/surface/cli"
	"lockkeeper/internal/surface/cli/term"
)

// If the rescue shelf does not take content from standard input either, the command
// saves it in a temporary file and says where.
func TestContentThatCannotBeKept(t *testing.T) {
	d := newConsole(t)
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(dir, "content"), []byte("precious"), 0o644))
	in, err := os.Open(filepath.Join(dir, "content"))
	must(err)
	defer in.Close()
	said, err := os.Create(filepath.Join(dir, "said"))
	must(err)
	defer said.Close()
	shelf := filepath.Join(d.dir, ".lockkeeper", "rescue")
	must(os.RemoveAll(shelf))
	must(os.WriteFile(shelf, nil, 0o600)) // prevents the creation of a shelf

	io := &term.IO{In: in, Out: said, Err: said, Dir: d.dir, Env: d.env, Now: time.Now}
	if code := cli.Main(context.Background(), io, []string{"gate", "write", "app/models/a.rb"}); code != 5 {
		t.Errorf("ended with %d, want 5", code)
	}
	text, err := os.ReadFile(said.Name())
	must(err)
	if !regexp.MustCompile(`the new content of app/models/a\.rb was not kept`).Match(text) {
		t.Errorf("not told that nothing was kept: %s", text)
	}
	at := regexp.MustCompile(`standard input is saved in (\S+?);?(\s|$)`).FindSubmatch(text)
	if at == nil {
		t.Fatalf("not told where the content is: %s", text)
	}
	if saved, err := os.ReadFile(string(at[1])); err != nil || string(saved) != "precious" {
		t.Errorf("%s holds %q, %v", at[1], saved, err)
	}
}
