package author_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lockkeeper/internal/project"
)

// Two machines that share a PostgreSQL store see each other's claims, and the foreign
// claims in each other's files.
//
// shows: LM-52 LM-58
func TestTwoMachines(t *testing.T) {
	url := os.Getenv("LOCKKEEPER_TEST_POSTGRES")
	if url == "" {
		t.Fatal("LOCKKEEPER_TEST_POSTGRES: run make test, or scripts/postgres run -- go test ./…")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	var machines []*study
	space := ""
	for _, name := range []string{"desktop", "laptop"} {
		s := &study{t: t, root: filepath.Join(dir, name, "book")}
		s.env = []string{"XDG_STATE_HOME=" + filepath.Join(dir, name, "state"), "HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LOCKKEEPER_STORE=" + url, "LOCKKEEPER_DEPLOYMENT=multi-node"}
		must(t, os.MkdirAll(s.root, 0o755), os.WriteFile(filepath.Join(s.root, "lockkeeper.yaml"), []byte(settings), 0o644))
		_, err := project.Init(t.Context(), s.settings(), project.InitOptions{Space: space})
		must(t, err)
		s.open()
		space = s.app.Space
		machines = append(machines, s)
	}
	desktop, laptop := machines[0], machines[1]
	one, _ := desktop.instance("CLI-1")
	two, _ := laptop.instance("CLI-2")
	desktop.claim(one, "Chapter_01")
	if got := laptop.blocked(two, "Chapter_01"); got[0].Instance != "CLI-1" {
		t.Errorf("conflicts on the laptop: %+v", got)
	}
	if !laptop.hasEntry("Chapter_01", "CLI-1") {
		t.Errorf("the laptop's file has %v", laptop.file())
	}
	// A foreign claim on one machine is an ordinary claim on the other.
	desktop.foreign(append(desktop.file(), entry("Chapter_02", "Desktop-9", time.Minute))...)
	desktop.listed()
	if got := laptop.blocked(two, "Chapter_02"); got[0].Instance != "Desktop-9" || !got[0].Foreign {
		t.Errorf("conflicts on the laptop: %+v", got)
	}
	if !laptop.hasEntry("Chapter_02", "Desktop-9") {
		t.Errorf("the laptop's file has %v", laptop.file())
	}
	laptop.foreign() // a tool on the laptop clears all
	if len(laptop.listed()) != 2 || !laptop.hasEntry("Chapter_02", "Desktop-9") {
		t.Errorf("the laptop's file has %v", laptop.file())
	}
	desktop.foreign() // the tool on the desktop releases its claim
	desktop.listed()
	laptop.claim(two, "Chapter_02")
	if desktop.listed()["Chapter_02"].Instance != "CLI-2" || !desktop.hasEntry("Chapter_02", "CLI-2") {
		t.Errorf("the desktop's file has %v", desktop.file())
	}
}
