package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// nobody is a user without any rights.
const nobody = 65534

// asNobody gives the scene to an ordinary user and returns a command of that user, which prints
// to h.
func (s *scene) asNobody(h *heard, argv []string) *exec.Cmd {
	s.t.Helper()
	for dir := s.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	if out, err := exec.Command("chown", "-R", "65534:65534", s.root, s.store, s.workspace, s.temp).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(s.t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout = s.workspace, h.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

// eachLevelOfUsers runs a test under every level that an ordinary user can use.
func eachLevelOfUsers(t *testing.T, test func(t *testing.T, l Level)) {
	if os.Geteuid() != 0 {
		t.Skip("every test here runs as an ordinary user")
	}
	eachLevel(t, func(t *testing.T, l Level) {
		if l.Namespaces && !l.User {
			t.Skip("only for root")
		}
		test(t, l)
	})
}

// The sandbox of an ordinary user works like that of root.
//
// shows: GP-5
func TestOrdinaryUser(t *testing.T) {
	eachLevelOfUsers(t, func(t *testing.T, l Level) {
		s, h := newScene(t), listen(t)
		leaves := "true"
		if l.Namespaces {
			leaves = daemon
		}
		cmd := s.asNobody(h, s.wrap(l, "sh", "-c", leaves+`; id -u; touch mine && echo inside; echo x > "$0/file"; chmod 777 "$0/file"
			cat "$0/../store/state.db"; grep CapPrm /proc/self/status; exit 3`, s.root))
		before := s.shared()
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Error(err)
		}
		if uid, inside := h.line(), h.line(); uid != "65534" || inside != "inside" {
			t.Errorf("%s, %s", uid, inside)
		}
		caps := h.line()
		if caps != "CapPrm:\t0000000000000000" {
			t.Error(caps)
		}
		h.wantSilence()
		if after := s.shared(); after != before && l.Namespaces {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	})
}

// For an ordinary user, too, the death of the outer process ends all others.
//
// shows: GP-5
func TestOrdinaryUserLeavesNothing(t *testing.T) {
	eachLevelOfUsers(t, func(t *testing.T, l Level) {
		if !l.Namespaces {
			t.Skip("without namespaces this is left to process.EndLeftovers")
		}
		s, h := newScene(t), listen(t)
		cmd := s.asNobody(h, s.wrap(l, "sh", "-c", daemon+"; echo ready; sleep 1000"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.line()
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		cmd.Wait()
		h.wantSilence()
	})
}
