package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// These are the attributes of mounts of existing directories.
const (
	readOnly  = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID
	readWrite = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
)

// A root is a new file system under construction: a skeleton of directories in memory,
// that has mounts and links.
type root struct {
	points   map[string]*mountPoint
	writable []string // paths that the command may write to
}

// A mountPoint is the mount or link at a path of a root.
type mountPoint struct {
	mount  *os.File
	dir    bool   // the mount is a directory
	sealed bool   // the mount becomes read-only when the root is complete
	link   string // the text of a link, if mount is nil
}

// enterRoot makes the root of an order and makes it this process's root. It returns the writable
// paths in it. Files named on the command line are found through the same links as outside.
func enterRoot(o order, argv []string) (writable []string, err error) {
	here := o.Dir
	if here == "" {
		if here, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("find the working directory: %w", err)
		}
	} else if err := os.Setenv("PWD", here); err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(here); err == nil && o.Places[real] != "" {
		here = o.Places[real]
		if err := os.Setenv("PWD", here); err != nil { // otherwise a shell keeps the other path
			return nil, err
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("separate the mounts: %w", err)
	}
	r := &root{points: map[string]*mountPoint{}}
	if err := r.fill(o); err != nil {
		return nil, err
	}
	r.addLinks(append(filepath.SplitList(os.Getenv("PATH")), os.Getenv("HOME"), os.Getenv("PWD"))...)
	r.addLinks(argv...)
	if err := r.assemble(); err != nil {
		return nil, err
	}
	if err := os.Chdir(here); err != nil {
		return nil, fmt.Errorf("the sandbox does not show the working directory: %w", err)
	}
	return r.writable, nil
}

// fill adds everything that a command sees to the root. A later mount replaces an earlier one at
// the same path, and covers part of a mount above it.
func (r *root) fill(o order) error {
	for _, path := range systemPaths() {
		if err := r.bind(path, path, readOnly); err != nil {
			return err
		}
	}
	for _, path := range system {
		if text, err := os.Readlink(path); err == nil {
			r.points[path] = &mountPoint{link: text}
		}
	}
	for _, path := range systemSecrets() {
		if err := r.hide(path); err != nil {
			return err
		}
	}
	if err := r.addOwn(o); err != nil {
		return err
	}
	for _, path := range append(ownProgram(), o.Read...) {
		if err := r.bind(path, path, readOnly); err != nil {
			return err
		}
	}
	for i, s := range o.Scratch {
		if err := r.overlay(s, o, i); err != nil {
			return err
		}
	}
	for _, path := range o.Write {
		if err := r.bind(path, path, readWrite); err != nil {
			return err
		}
		r.writable = append(r.writable, path)
	}
	for path, at := range o.Places {
		if slices.ContainsFunc(o.Overlays, func(v Overlay) bool { return v.At == path }) {
			continue // addOverlays places it
		}
		if err := r.bind(at, path, readWrite); err != nil {
			return err
		}
		r.writable = append(r.writable, at)
	}
	if err := r.addOverlays(o); err != nil {
		return err
	}
	return r.addKernel()
}

// ownProgram returns the file of this program, which commands use to talk to their supervisor.
func ownProgram() []string {
	path, err := filepath.EvalSymlinks(self)
	if err != nil {
		return nil // the file was removed
	}
	return []string{path}
}

// addOwn adds the directories that belong to the command alone.
func (r *root) addOwn(o order) error {
	own := map[string]string{"/tmp": "1777", "/var/tmp": "1777"}
	home := realHome()
	if home != "" {
		own[home] = "700"
	}
	for path, mode := range own {
		r.writable = append(r.writable, path)
		var err error
		switch {
		case o.Private == "":
			err = r.add(path, "tmpfs", map[string]string{"mode": mode}, unix.MOUNT_ATTR_NODEV)
		case path == home:
			err = r.bind(path, o.privateHome(), readWrite)
		default:
			err = r.bind(path, o.privateTemp(), readWrite)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// realHome returns the user's home directory without links, or "" if it is unknown.
func realHome() string {
	home, err := filepath.EvalSymlinks(os.Getenv("HOME"))
	if err != nil || !filepath.IsAbs(home) || slices.ContainsFunc(system, func(path string) bool { return within(path, home) }) {
		return ""
	}
	return home
}

// bind places a mount of a path of the machine at a path of the root.
func (r *root) bind(at, path string, attr uint64) error {
	source, err := openPath(path)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	mount, err := clone(source)
	if err != nil {
		return err
	}
	if err := unix.MountSetattr(int(mount.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err != nil {
		mount.Close()
		return fmt.Errorf("set the mount attributes of %s: %w", path, err)
	}
	r.put(at, &mountPoint{mount: mount, dir: info.IsDir()})
	return nil
}

// hide places an empty file or directory over a path that the mount above it would show.
func (r *root) hide(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.bind(path, os.DevNull, unix.MOUNT_ATTR_RDONLY)
	}
	return r.seal(path, "555")
}

// seal places an empty directory at a path, to which only mounts can be added.
func (r *root) seal(path, mode string) error {
	mount, err := newMount("tmpfs", map[string]string{"mode": mode}, 0)
	if err != nil {
		return err
	}
	r.put(path, &mountPoint{mount: mount, dir: true, sealed: true})
	return nil
}

// add puts a mount of a new file system at a path.
func (r *root) add(path, kind string, options map[string]string, attr int) error {
	mount, err := newMount(kind, options, attr)
	if err != nil {
		return err
	}
	r.put(path, &mountPoint{mount: mount, dir: true})
	return nil
}

func (r *root) put(path string, p *mountPoint) {
	if before := r.points[path]; before != nil && before.mount != nil {
		before.mount.Close()
	}
	r.points[path] = p
}

// addLinks adds the links on the way to some paths. Their targets exist only if they are
// listed.
func (r *root) addLinks(paths ...string) {
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			continue
		}
		for at, text := range linksTo(filepath.Clean(path)) {
			if r.points[at] == nil && !within(at, "/proc") && !within(at, "/dev") { // the command has its own /proc and /dev
				r.points[at] = &mountPoint{link: text}
			}
		}
	}
}

// assemble builds the root, makes it this process's root, and unmounts the old one.
func (r *root) assemble() error {
	skeleton, err := newMount("tmpfs", map[string]string{"mode": "755"}, 0)
	if err != nil {
		return err
	}
	top, err := mountSkeleton(skeleton)
	if err != nil {
		return err
	}
	defer top.Close()
	sealed := []*os.File{skeleton}
	for _, path := range slices.Sorted(maps.Keys(r.points)) { // parents come before their children
		p := r.points[path]
		if err := p.attach(top, path); err != nil {
			return err
		}
		if p.sealed {
			sealed = append(sealed, p.mount)
		}
	}
	for _, mount := range sealed {
		if err := unix.MountSetattr(int(mount.Fd()), "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("seal the new root: %w", err)
		}
	}
	if err := unix.Fchdir(int(top.Fd())); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("make the new root the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	return os.Chdir("/")
}

// mountSkeleton mounts the skeleton over a directory of the old root, since only a mount
// that is attached somewhere can become the root. It returns the skeleton's directory.
func mountSkeleton(skeleton *os.File) (*os.File, error) {
	const over = "/proc"
	target, err := openPath(over)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	if err := moveMount(skeleton, target); err != nil {
		return nil, err
	}
	return openPath(over)
}

// attach puts a mount or link into a root, and makes the directories above it.
func (p *mountPoint) attach(top *os.File, path string) error {
	dir, err := makeParents(top, path)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(path)
	if p.mount == nil {
		err := unix.Symlinkat(p.link, int(dir.Fd()), name)
		if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EROFS) { // another mount has a link or a file at this path
			return nil
		}
		return wrapPath("link", path, err)
	}
	if p.dir {
		err = unix.Mkdirat(int(dir.Fd()), name, 0o755)
	} else {
		err = unix.Mknodat(int(dir.Fd()), name, unix.S_IFREG|0o644, 0)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return wrapPath("make", path, err)
	}
	at, err := openAt(dir, name)
	if err != nil {
		return err
	}
	defer at.Close()
	return moveMount(p.mount, at) // the descriptor of the mount is closed when this program ends
}

// makeParents opens the directory above a path in a root, and makes it if needed.
func makeParents(top *os.File, path string) (*os.File, error) {
	dir, err := openAt(top, ".")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(filepath.Dir(path), "/"), "/") {
		if name == "" {
			break
		}
		if err := unix.Mkdirat(int(dir.Fd()), name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			dir.Close()
			return nil, wrapPath("make the directory of", path, err)
		}
		next, err := openAt(dir, name)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}
