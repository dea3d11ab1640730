package workspace

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/machinetest"
	"lockkeeper/internal/machine/overlay"
)

// onLayers is set in the process that runs the tests of this package with workspaces on layers.
const onLayers = "LOCKKEEPER_TEST_LAYERS"

// TestOnLayers runs all tests of this package with workspaces on layers instead of copies, because
// both must do the same. It runs them in a mount namespace, in which tree attaches mounts.
func TestOnLayers(t *testing.T) {
	if os.Getenv(onLayers) != "" {
		t.Skip("this is the process with layers")
	}
	if err := overlay.Probe(t.Context(), t.TempDir()); err != nil {
		machinetest.Lacks(t, "%v", err)
	}
	args := []string{"-test.skip=" + flag.Lookup("test.skip").Value.String()}
	for _, name := range []string{"test.v", "test.short", "test.shuffle", "test.timeout", "test.parallel"} {
		args = append(args, "-"+name+"="+flag.Lookup(name).Value.String())
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), onLayers+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("%s", out)
	}
	must(t, err)
	if !strings.Contains(string(out), "PASS") {
		t.Errorf("no test ran:\n%s", out)
	}
}

// onlyCopies skips a test of what cannot happen on layers, or is tested elsewhere there.
func onlyCopies(t *testing.T, why string) {
	t.Helper()
	if os.Getenv(onLayers) != "" {
		t.Skip(why)
	}
}

// makeEither makes a workspace of the kind that this process tests.
func makeEither(t *testing.T, o Options) *Workspace {
	t.Helper()
	if os.Getenv(onLayers) == "" {
		w, err := Make(t.Context(), o)
		must(t, err)
		return w
	}
	b, err := NewBase(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close(context.Background())) })
	w, err := b.Make(t.Context(), nil)
	must(t, err)
	return w
}

// tree returns the directory in which the agent of a workspace works. It must be called again after
// each method of the workspace.
func tree(t *testing.T, w *Workspace) string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.layered == nil || w.home < 0 || w.layered.unmount != nil {
		return w.Dir()
	}
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	mount, err := w.stack().Mount(treeName)
	must(t, err)
	must(t, unix.MoveMount(int(mount.Fd()), "", unix.AT_FDCWD, w.Dir(), unix.MOVE_MOUNT_F_EMPTY_PATH))
	must(t, mount.Close())
	w.layered.unmount = func() {
		w.layered.unmount = nil
		if err := unix.Unmount(w.Dir(), unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", w.Dir(), err)
		}
	}
	return w.Dir()
}
