package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The path of a socket stays short enough wherever the workspaces and the temporary directory
// are.
func TestTempDirFitsASocket(t *testing.T) {
	short, long := strings.Repeat("s", longestTemp), strings.Repeat("l", longestTemp+1)
	for _, c := range []struct{ home, temp, want string }{{short, "/tmp", short}, {long, short, short}, {long, long, "/tmp"}} {
		if got := tempParent(c.home, c.temp); got != c.want {
			t.Errorf("%.3s… and %.3s…: %s", c.home, c.temp, got)
		}
	}
	if name := short + "/lk4294967295/supervisor.sock"; len(name) > 107 {
		t.Errorf("%d bytes", len(name))
	}
}

// Paths that do not exist are left out, also paths below a file. The others are returned with
// links resolved.
func TestExisting(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	got, err := existing([]string{dir, file + "/settings.json", dir + "/missing", link})
	if err != nil || !slices.Equal(got, []string{dir, file}) {
		t.Errorf("%q, %v", got, err)
	}
}
