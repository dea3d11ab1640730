package workspace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func init() {
	children["work"] = func(args []string) error {
		w, err := Make(context.Background(), Options{Root: args[0], Dir: args[1]})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(w.Dir(), "mine.rb"), []byte("mine"), 0o644); err != nil {
			return err
		}
		return tellAndWait(w.Home())
	}
	children["half"] = func(args []string) error {
		calls := 0
		_, err := Make(context.Background(), Options{Root: args[0], Dir: args[1], Landed: func(context.Context, uint64) ([]string, uint64, error) {
			if calls++; calls < 2 {
				return nil, 0, nil
			}
			homes, err := filepath.Glob(filepath.Join(args[1], "*", treeName, "new.rb"))
			if err != nil {
				return nil, 0, err
			}
			for _, home := range homes { // the unfinished one has no manifest
				home = filepath.Dir(filepath.Dir(home))
				if _, err := os.Stat(filepath.Join(home, manifestName)); err != nil {
					return nil, 0, tellAndWait(home)
				}
			}
			return nil, 0, fmt.Errorf("nothing is being made")
		}})
		return err
	}
	children["unprivileged"] = unprivileged
}

// tellAndWait prints the path of a workspace and waits to be killed.
func tellAndWait(home string) error {
	fmt.Println(home)
	bufio.NewReader(os.Stdin).ReadString('\n')
	return errors.New("not killed")
}

// startAndKill runs a child until it prints the path of its workspace, and kills it.
func startAndKill(t *testing.T, what string, args ...string) (home string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{childArg, what}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	home, err = bufio.NewReader(out).ReadString('\n')
	must(t, err)
	must(t, cmd.Process.Kill())
	cmd.Wait()
	return strings.TrimSpace(home)
}

// A user other than root is limited by permissions.
func TestWithoutPrivileges(t *testing.T) {
	onlyCopies(t, "this process may read everything")
	if os.Geteuid() != 0 {
		must(t, unprivileged([]string{t.TempDir()}))
		return
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "workspace")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chown(dir, nobody, nobody))
	self, err := os.Open(os.Args[0])
	must(t, err)
	defer self.Close()
	cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3", childArg, "unprivileged", dir)
	cmd.ExtraFiles = []*os.File{self} // that user cannot open it by its path
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// unprivileged makes, changes and closes a workspace of a tree with inaccessible directories.
func unprivileged(args []string) error {
	root := filepath.Join(args[0], "shared")
	run := func(dir, script string) error {
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", script, err, out)
		}
		return nil
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := run(root, `mkdir -p ro/sub closed open; echo 1 > ro/a; echo 2 > ro/sub/b; echo 3 > closed/c; echo 4 > secret; echo 5 > open/d; echo 6 > ro/e
		chmod 0 closed secret; chmod 444 ro/a; chmod 555 ro/sub ro`); err != nil {
		return err
	}
	ctx := context.Background()
	w, err := Make(ctx, Options{Root: root, Dir: filepath.Join(args[0], "workspaces")})
	if err != nil {
		return err
	}
	want := func(what string, got any, want string) error {
		if fmt.Sprint(got) != want {
			return fmt.Errorf("%s: %v, not %s", what, got, want)
		}
		return nil
	}
	list := func() string {
		found, err := w.Changes(ctx)
		var b strings.Builder
		for _, c := range found {
			fmt.Fprintf(&b, "%s %s; ", c.Kind, c.Path)
		}
		if err != nil {
			fmt.Fprint(&b, err)
		}
		return b.String()
	}
	info, err := os.Stat(filepath.Join(w.Dir(), "ro/sub"))
	if err != nil {
		return err
	}
	if err := errors.Join(want("oddities", w.Oddities(), "[{closed not copied: permission denied} {secret not copied: permission denied}]"),
		want("mode of a copied directory", info.Mode(), "dr-xr-xr-x"), want("changes", list(), "")); err != nil {
		return err
	}
	// Changes by other processes in a read-only directory are copied, and its mode stays.
	if err := run(root, "chmod u+w ro ro/sub; echo new > ro/sub/b; echo n > ro/sub/n; rm ro/e; chmod u-w ro ro/sub"); err != nil {
		return err
	}
	moved, conflicts, err := w.Refresh(ctx, []string{"ro"})
	if err := errors.Join(err, want("moved", moved, "[ro/e ro/sub/b ro/sub/n]"), want("conflicts", conflicts, "[]"), want("changes", list(), "")); err != nil {
		return err
	}
	if err := run(w.Dir(), "chmod 0 .. ."); err != nil {
		return err
	}
	if err := want("changes of one that was closed", list(), ""); err != nil {
		return err
	}
	if err := run(w.Dir(), "chmod -R u+w ro; rm -r ro/sub; echo mine > ro/new; chmod 0 ro/new; echo 2 > open/d; chmod 0 open/d; mkdir -p x/y; echo z > x/y/z; chmod 0 x/y x open"); err != nil {
		return err
	}
	const changed = "mode changed open; modified open/d; mode changed ro; mode changed ro/a; created ro/new; deleted ro/sub/b; deleted ro/sub/n; created x/y/z; "
	if err := want("changes", list(), changed); err != nil {
		return err
	}
	taken, err := w.TakeOut(ctx, []string{"."})
	if err := errors.Join(err, want("number of changes", len(taken), "8"), want("changes", list(), ""), run(w.Dir(), "test ! -e x; test ! -w ro/sub; test ! -w ro/a")); err != nil {
		return err
	}
	if err := run(w.Dir(), "mkdir -p deep/er/est; touch deep/er/est/x; chmod 0 deep/er/est deep/er deep .. ."); err != nil {
		return err
	}
	if err := w.Close(ctx, false); err != nil {
		return err
	}
	if isThere(w.Home()) {
		return errors.New("it is still there")
	}
	return run(root, "chmod -R u+rwx .")
}
