package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Probe returns nil if overlays work with directories in dir. Otherwise the error says why not. It
// mounts a small stack, changes it in the ways that disks without full support get wrong, and reads
// the changes back from the upper directory.
func Probe(ctx context.Context, dir string) (err error) {
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	trial, err := os.MkdirTemp(dir, ".overlay-")
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	defer func() { err = errors.Join(err, Empty(trial), os.Remove(trial)) }()
	s := Stack{Lower: []string{filepath.Join(trial, "lower")}, Upper: filepath.Join(trial, "upper"), Work: filepath.Join(trial, "work")}
	for _, made := range []error{
		os.MkdirAll(filepath.Join(s.Lower[0], "dir", "old"), 0o700),
		os.WriteFile(filepath.Join(s.Lower[0], "file"), []byte("a"), 0o600),
		os.WriteFile(filepath.Join(s.Lower[0], "gone"), nil, 0o600),
		os.Mkdir(s.Upper, 0o700), os.Mkdir(s.Work, 0o700),
	} {
		if made != nil {
			return fmt.Errorf("overlay: %w", made)
		}
	}
	if err := s.tryChanges(ctx); err != nil {
		return err
	}
	return s.tryResults()
}

// tryChanges appends to a file, removes a file, and replaces a directory.
func (s Stack) tryChanges(ctx context.Context) error {
	merged, err := Open(ctx, s)
	if err != nil {
		return err
	}
	defer merged.Close()
	top := int(merged.Fd())
	fd, err := unix.Openat(top, "file", unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("overlay: change a file: %w", err)
	}
	file := os.NewFile(uintptr(fd), "file")
	if _, err := io.WriteString(file, "b"); err != nil {
		return errors.Join(fmt.Errorf("overlay: change a file: %w", err), file.Close())
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("overlay: change a file: %w", err)
	}
	for what, err := range map[string]error{
		"remove a file":       unix.Unlinkat(top, "gone", 0),
		"replace a directory": errors.Join(unix.Unlinkat(top, "dir/old", unix.AT_REMOVEDIR), unix.Unlinkat(top, "dir", unix.AT_REMOVEDIR), unix.Mkdirat(top, "dir", 0o700)),
	} {
		if err != nil {
			return fmt.Errorf("overlay: %s: %w", what, err)
		}
	}
	return nil
}

// tryResults checks that the upper directory has the changes, and the lower one none.
func (s Stack) tryResults() error {
	if changed, err := os.ReadFile(filepath.Join(s.Upper, "file")); err != nil || string(changed) != "ab" {
		return fmt.Errorf("overlay: the upper directory does not have a changed file (%q, %v)", changed, err)
	}
	var gone unix.Stat_t
	if err := unix.Lstat(filepath.Join(s.Upper, "gone"), &gone); err != nil || gone.Mode&unix.S_IFMT != unix.S_IFCHR || gone.Rdev != 0 {
		return fmt.Errorf("overlay: the upper directory does not show that a file was removed (mode %o, %v)", gone.Mode, err)
	}
	var opaque [1]byte
	if _, err := unix.Lgetxattr(filepath.Join(s.Upper, "dir"), "user.overlay.opaque", opaque[:]); err != nil || opaque[0] != 'y' {
		return fmt.Errorf("overlay: the upper directory does not show that a directory was replaced (%q, %v)", opaque, err)
	}
	kept, err := os.ReadFile(filepath.Join(s.Lower[0], "file"))
	if err == nil {
		_, err = os.Lstat(filepath.Join(s.Lower[0], "dir", "old"))
	}
	if err != nil || string(kept) != "a" {
		return fmt.Errorf("overlay: a change reached the lower directory (%q, %v)", kept, err)
	}
	return nil
}
