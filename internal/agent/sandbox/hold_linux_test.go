package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An attackKind is the kind of change that an attack makes if it works.
type attackKind int

const (
	content   attackKind = iota // files and directories of the shared tree
	attribute                   // only changes that Landlock cannot deny
	machine                     // more than the scene: never run unconfined
)

// An anAttack is one way to change the shared tree from a workspace.
type anAttack struct {
	name string
	kind attackKind
	do   func() error
}

func attacks(root, workspace string) []anAttack {
	file, dir := root+"/file", root+"/sub"
	open := func(flag int) func() error {
		return func() error {
			f, err := os.OpenFile(file, flag, 0o644)
			if err != nil {
				return err
			}
			return f.Close()
		}
	}
	through := func(link func(string) error) func() error {
		return func() error {
			name := filepath.Join(workspace, "through")
			os.Remove(name)
			if err := link(name); err != nil {
				return err
			}
			return os.WriteFile(name, []byte("changed"), 0o644)
		}
	}
	return []anAttack{
		{"open for writing", content, open(unix.O_WRONLY)},
		{"open for both", content, open(unix.O_RDWR)},
		{"open to truncate", content, open(unix.O_RDONLY | unix.O_TRUNC)},
		{"append", content, open(unix.O_WRONLY | unix.O_APPEND)},
		{"truncate", content, func() error { return os.Truncate(file, 0) }},
		{"map into memory", content, func() error {
			f, err := os.OpenFile(file, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			mapped, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			mapped[0] = 'x'
			return unix.Munmap(mapped)
		}},
		{"create", content, func() error { return os.WriteFile(root+"/new", nil, 0o644) }},
		{"create without a name", content, func() error {
			fd, err := unix.Open(root, unix.O_TMPFILE|unix.O_RDWR, 0o644)
			if err == nil {
				err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, root+"/new", unix.AT_SYMLINK_FOLLOW)
			}
			return err
		}},
		{"unlink", content, func() error { return os.Remove(file) }},
		{"make a directory", content, func() error { return os.Mkdir(root+"/newdir", 0o755) }},
		{"remove a directory", content, func() error { return os.Remove(root + "/empty") }},
		{"make a pipe", content, func() error { return unix.Mkfifo(root+"/pipe", 0o644) }},
		{"make a link", content, func() error { return os.Symlink("file", root+"/link") }},
		{"make a device", machine, func() error { return unix.Mknod(workspace+"/device", unix.S_IFBLK|0o600, 1<<8) }},
		{"rename within", content, func() error { return os.Rename(file, root+"/renamed") }},
		{"rename out", content, func() error { return os.Rename(file, workspace+"/taken") }},
		{"rename in", content, func() error { return os.Rename(workspace+"/file", root+"/put") }},
		{"rename over", content, func() error { return os.Rename(workspace+"/file", file) }},
		{"exchange", content, func() error {
			return unix.Renameat2(unix.AT_FDCWD, workspace+"/file", unix.AT_FDCWD, file, unix.RENAME_EXCHANGE)
		}},
		{"rename the tree", content, func() error { return os.Rename(root, root+"2") }},
		{"hard link in", content, func() error { return os.Link(workspace+"/file", root+"/linked") }},
		{"write through a hard link", content, through(func(name string) error { return os.Link(file, name) })},
		{"write through a link", content, through(func(name string) error { return os.Symlink(file, name) })},
		{"write through a link to the tree", content, func() error {
			if err := os.Symlink(root, workspace+"/tree"); err != nil {
				return err
			}
			return os.WriteFile(workspace+"/tree/sub/new", nil, 0o644)
		}},
		{"write through a magic link", content, func() error {
			f, err := os.Open(file)
			if err != nil {
				return err
			}
			defer f.Close()
			return os.WriteFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), []byte("changed"), 0)
		}},
		{"write through the first process", machine, func() error { return os.WriteFile("/proc/1/root"+file, []byte("changed"), 0) }},
		{"mount over", machine, func() error { return unix.Mount(workspace, dir, "", unix.MS_BIND, "") }},
		{"mount for writing", machine, func() error { return unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND, "") }},
		{"mount for writing everywhere", machine, func() error {
			return unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}},
		{"open by handle", content, func() error {
			handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, file, 0)
			if err != nil {
				return err
			}
			at, err := unix.Open(workspace, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			_, err = unix.OpenByHandleAt(at, handle, unix.O_RDWR)
			return err
		}},
		{"change the kernel", machine, func() error {
			return os.WriteFile("/proc/sys/kernel/core_pattern", []byte("core"), 0)
		}},
		{"change a mode", attribute, func() error { return os.Chmod(file, 0o777) }},
		{"change times", attribute, func() error { return os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)) }},
		{"change an attribute", attribute, func() error { return unix.Setxattr(file, "user.test", []byte("x"), 0) }},
		{"change an owner", attribute, func() error { return os.Chown(file, os.Getuid(), os.Getgid()) }},
	}
}

// attack runs the named attacks and prints those that worked.
func attack(root, workspace string, names []string) int {
	for _, a := range attacks(root, workspace) {
		if slices.Contains(names, a.name) && a.do() == nil {
			fmt.Println("done:", a.name)
		}
	}
	return 0
}

// Nothing in the shared tree changes, whatever a command tries. A Level fails to deny only the
// documented attacks.
//
// shows: GP-5
func TestNothingOutsideChanges(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		before := s.shared()
		args := []string{s.root, s.workspace}
		for _, a := range attacks(s.root, s.workspace) {
			args = append(args, a.name)
		}
		said, code := s.run(l, helperArgv("attack", args...)...)
		if code != 0 {
			t.Fatalf("code %d: %s", code, said)
		}
		for _, a := range attacks(s.root, s.workspace) {
			worked := slices.Contains(strings.Split(said, "\n"), "done: "+a.name)
			if worked && (a.kind != attribute || l.Namespaces) {
				t.Errorf("it could %s", a.name)
			}
		}
		if after := s.shared(); after != before && l.Namespaces {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
		if text, err := os.ReadFile(s.root + "/file"); err != nil || string(text) != "shared" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// The attacks work if they are not confined. Only those that stay in the scene are tried.
//
// shows: GP-5
func TestAttacksWorkUnconfined(t *testing.T) {
	for _, a := range attacks("", "") {
		if a.kind == machine {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			s := newScene(t)
			said, _ := s.start(helperArgv("attack", s.root, s.workspace, a.name))
			if said != "done: "+a.name+"\n" {
				t.Errorf("it did not work: %q", said)
			}
		})
	}
}

// Permitted operations work, and so do the operations that every command needs.
//
// shows: GP-5
func TestInsideWorksAsEver(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		s.shell(l, `echo new > new; mkdir d; mv new d/moved; ln d/moved d/hard; ln -s moved d/soft; chmod 600 d/moved
			touch -d 2001-01-01 d/moved; truncate -s 0 file; rm d/hard; mkfifo pipe; rm -r d
			t=$(mktemp); echo x > "$t"; test "${t#"$TMPDIR"}" != "$t"
			echo x > /dev/null; echo out > /dev/stdout; echo err > /dev/stderr; test -r /dev/urandom
			echo x > /dev/shm/lockkeeper-test-$$; rm /dev/shm/lockkeeper-test-$$
			cat "`+s.root+`/file" > copy; test "$(cat copy)" = shared; test "$(pwd)" = "`+s.workspace+`"
			if $0; then echo x > /tmp/mine; echo x > /var/tmp/mine; echo x > ~/mine; fi`, fmt.Sprint(l.Namespaces))
	})
}

// A command can open its standard output file again by name.
func TestOutputFileOpensAgain(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		out := s.root + "/output"
		f, err := os.Create(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		argv := s.wrap(l, "sh", "-c", "echo one; echo two >> /dev/stdout")
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Stdout = s.workspace, f
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(out); err != nil || string(text) != "one\ntwo\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// Changes that an agent makes with git stay in its workspace.
//
// shows: GP-5
func TestGitResetStaysInside(t *testing.T) {
	l, s := best(t), newScene(t)
	git := `git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main -c safe.directory='*'`
	if said, code := s.start([]string{"sh", "-ec", `cd "$0"; ` + git + ` init -q; ` + git + ` add file sub; ` + git + ` commit -qm one; echo edited > file`, s.root}); code != 0 {
		t.Fatal(said)
	}
	before := s.shared()
	s.shell(l, git+` init -q; `+git+` add .; `+git+` commit -qm one; echo x > file; `+git+` reset -q --hard; test "$(cat file)" = mine`)
	if said, code := s.run(l, "git", "-c", "safe.directory=*", "-C", s.root, "reset", "--hard"); code == 0 {
		t.Errorf("reset the shared tree: %s", said)
	}
	if after := s.shared(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}
