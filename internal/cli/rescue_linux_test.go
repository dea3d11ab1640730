package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/cli"
)

// What an agent wrote is shown to a person without the power to move the cursor,
// and to a program as it is.
func TestRescuedContentCannotSpeakToTheTerminal(t *testing.T) {
	d := newDesk(t)
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
	if text := d.must(0, "rescue", "show", id); !strings.Contains(text, "+\tharmless\x1b[2J\n") {
		t.Errorf("a program got %q", text)
	}
	show := &cli.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: d.env, Now: time.Now}
	if code := cli.Main(context.Background(), show, []string{"rescue", "show", id}); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	if seen := d.sees("next: lockkeeper rescue land " + id); !strings.Contains(seen, "+\tharmless\\x1b[2J") || strings.Contains(seen, "\x1b[2J") {
		t.Errorf("a person saw %q", seen)
	}
}
