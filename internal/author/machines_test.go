package author_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lockkeeper/internal/app"
)

// Two machines that share a store through PostgreSQL see each other's claims, and the
// foreign ones of either's file.
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
	for _, name := range []string{"desk", "laptop"} {
		s := &study{t: t, root: filepath.Join(dir, name, "book")}
		s.env = []string{"XDG_STATE_HOME=" + filepath.Join(dir, name, "state"), "HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LOCKKEEPER_STORE=" + url, "LOCKKEEPER_DEPLOYMENT=multi-node"}
		must(t, os.MkdirAll(s.root, 0o755), os.WriteFile(filepath.Join(s.root, "lockkeeper.yaml"), []byte(settings), 0o644))
		_, err := app.Init(t.Context(), s.settings(), app.InitOptions{Space: space})
		must(t, err)
		s.open()
		space = s.app.Space
		machines = append(machines, s)
	}
	desk, laptop := machines[0], machines[1]
	one, _ := desk.instance("CLI-1")
	two, _ := laptop.instance("CLI-2")
	desk.claim(one, "Chapter_01")
	if got := laptop.blocked(two, "Chapter_01"); got[0].Instance != "CLI-1" {
		t.Errorf("in the laptop's way: %+v", got)
	}
	if !laptop.hasEntry("Chapter_01", "CLI-1") {
		t.Errorf("the laptop's file has %v", laptop.file())
	}
	// A tool on the desk claims; on the laptop that is as any other claim.
	desk.foreign(append(desk.file(), entry("Chapter_02", "Desktop-9", time.Minute))...)
	desk.listed()
	if got := laptop.blocked(two, "Chapter_02"); got[0].Instance != "Desktop-9" || !got[0].Foreign {
		t.Errorf("in the laptop's way: %+v", got)
	}
	if !laptop.hasEntry("Chapter_02", "Desktop-9") {
		t.Errorf("the laptop's file has %v", laptop.file())
	}
	laptop.foreign() // a tool on the laptop clears all
	if len(laptop.listed()) != 2 || !laptop.hasEntry("Chapter_02", "Desktop-9") {
		t.Errorf("the laptop's file has %v", laptop.file())
	}
	desk.foreign() // the tool on the desk has released its own
	desk.listed()
	laptop.claim(two, "Chapter_02")
	if desk.listed()["Chapter_02"].Instance != "CLI-2" || !desk.hasEntry("Chapter_02", "CLI-2") {
		t.Errorf("the desk's file has %v", desk.file())
	}
}
