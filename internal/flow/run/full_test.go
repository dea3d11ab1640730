package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/machinetest"
)

// If the disk has no room for an agent's work, neither as documents nor on the rescue shelf, the
// work stays in its workspace. Once there is room, the run resumes with it and repeats no call.
//
// shows: PL-59 PL-62
func TestNoRoomForTheWork(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.tasks(one)
	s.play(strings.Replace(oneScript, `content: "one\n"`, `content: "`+strings.Repeat(`one\n`, 50_000)+`"`, 1))
	small := []string{filepath.Join(s.root, ".pipeline"), filepath.Join(s.root, ".lockkeeper", "rescue")}
	for _, dir := range small {
		must(t, os.MkdirAll(dir, 0o755))
		machinetest.Mount(t, "tmpfs", dir, "tmpfs", 0, "size=64k")
	}
	if b := s.batch(s.run("all"), tasks, "one"); b.Status != flow.Failed || !strings.Contains(b.Error, "no space left") {
		t.Fatalf("%+v", b)
	}
	for _, dir := range small {
		must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=8m"))
	}
	auto, err := progress.ParsePolicy("all")
	must(t, err)
	if b := s.batch(s.conduct(request{Auto: &auto, Retry: true}), tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("with room: %+v", b)
	}
	s.holds("app/models/one.rb", strings.Repeat("one\n", 50_000))
	applied := 0
	for _, n := range s.news(run.NewsStarted) {
		if n.Phase == "apply" {
			applied++
		}
	}
	if applied != 1 {
		t.Errorf("the agent was asked %d times", applied)
	}
	for _, dir := range small { // remove the directories inside the tree separately
		must(t, syscall.Unmount(dir, syscall.MNT_DETACH))
	}
}
