package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// What a mount of an existing directory is permitted.
const (
	readOnly  = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID
	writeable = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
)

// A root is a new file system under construction: nothing but a skeleton of
// directories in memory, with mounts and links in their places.
type root struct {
	places   map[string]*place
	writable []string // paths that the command may write to
}

// A place is what will be at a path of a root: a mount, or a link.
type place struct {
	mount  *os.File
	dir    bool   // the mount is one of a directory
	sealed bool   // the mount becomes read-only when all is in place
	link   string // the text of a link, if mount is nil
}

// enterRoot makes the root that an order names and goes there, for good. It
// returns what may be written in it. Files that the command line names are found
// by the same links as outside.
func enterRoot(o order, argv []string) (writable []string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("separate the mounts: %w", err)
	}
	r := &root{places: map[string]*place{}}
	if err := r.fill(o); err != nil {
		return nil, err
	}
	r.addLinks(append(filepath.SplitList(os.Getenv("PATH")), os.Getenv("HOME"), os.Getenv("PWD"))...)
	r.addLinks(argv...)
	if err := r.assemble(); err != nil {
		return nil, err
	}
	if err := os.Chdir(here); err != nil {
		return nil, fmt.Errorf("the working directory is not among what the command may see: %w", err)
	}
	return r.writable, nil
}

// fill puts everything into the root that a command sees. What comes later
// replaces what is at the same path, and lies over what is above it.
func (r *root) fill(o order) error {
	for _, path := range systemPaths() {
		if err := r.bind(path, path, readOnly); err != nil {
			return err
		}
	}
	for _, path := range system {
		if text, err := os.Readlink(path); err == nil {
			r.places[path] = &place{link: text}
		}
	}
	for _, path := range systemSecrets() {
		if err := r.cover(path); err != nil {
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
	for i, path := range o.Scratch {
		if err := r.overlay(path, o, i); err != nil {
			return err
		}
	}
	for _, path := range o.Write {
		if err := r.bind(path, path, writeable); err != nil {
			return err
		}
		r.writable = append(r.writable, path)
	}
	return r.addKernel()
}

// ownProgram is the file of this program: commands talk to their supervisor with it.
func ownProgram() []string {
	path, err := filepath.EvalSymlinks(self)
	if err != nil {
		return nil // it was removed since
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
			err = r.add(path, func() (*os.File, error) {
				return newMount("tmpfs", map[string]string{"mode": mode}, unix.MOUNT_ATTR_NODEV)
			})
		case path == home:
			err = r.bind(path, o.privateHome(), writeable)
		default:
			err = r.bind(path, o.privateTemp(), writeable)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// realHome is the user's home directory by its true name; empty: there is none.
func realHome() string {
	home, err := filepath.EvalSymlinks(os.Getenv("HOME"))
	if err != nil || !filepath.IsAbs(home) || slices.ContainsFunc(system, func(path string) bool { return within(path, home) }) {
		return ""
	}
	return home
}

// bind shows what is at a path of the machine.
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
		return fmt.Errorf("set what may be done in %s: %w", path, err)
	}
	r.put(at, &place{mount: mount, dir: info.IsDir()})
	return nil
}

// cover puts something empty over a path that the mount above it would show.
func (r *root) cover(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.bind(path, os.DevNull, unix.MOUNT_ATTR_RDONLY)
	}
	return r.seal(path, "555")
}

// seal puts an empty directory at a path. Only mounts can be added to it.
func (r *root) seal(path, mode string) error {
	mount, err := newMount("tmpfs", map[string]string{"mode": mode}, 0)
	if err != nil {
		return err
	}
	r.put(path, &place{mount: mount, dir: true, sealed: true})
	return nil
}

// overlay shows a directory that the command may change for itself.
func (r *root) overlay(path string, o order, number int) error {
	if o.Private != "" {
		mount, err := newOverlay(path, filepath.Join(o.privateLayers(), fmt.Sprint(number)))
		if err == nil {
			r.put(path, &place{mount: mount, dir: true})
			r.writable = append(r.writable, path)
			return nil
		}
	}
	return r.bind(path, path, readOnly)
}

// add puts a mount of a new file system at a path.
func (r *root) add(path string, make func() (*os.File, error)) error {
	mount, err := make()
	if err != nil {
		return err
	}
	r.put(path, &place{mount: mount, dir: true})
	return nil
}

func (r *root) put(path string, p *place) {
	if before := r.places[path]; before != nil && before.mount != nil {
		before.mount.Close()
	}
	r.places[path] = p
}

// addLinks adds the links by which programs reach some paths. What they lead to
// is there only if it is named.
func (r *root) addLinks(paths ...string) {
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			continue
		}
		for at, text := range linksTo(filepath.Clean(path)) {
			if r.places[at] == nil && !within(at, "/proc") && !within(at, "/dev") { // which are the command's own
				r.places[at] = &place{link: text}
			}
		}
	}
}

// assemble builds the root and makes it this process's own. The old one goes.
func (r *root) assemble() error {
	skeleton, err := newMount("tmpfs", map[string]string{"mode": "755"}, 0)
	if err != nil {
		return err
	}
	top, err := cover(skeleton)
	if err != nil {
		return err
	}
	defer top.Close()
	sealed := []*os.File{skeleton}
	for _, path := range r.order() {
		p := r.places[path]
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

// cover mounts the skeleton over a directory of the old root, since only what is
// mounted somewhere can become the root. It returns the skeleton's directory.
func cover(skeleton *os.File) (*os.File, error) {
	const over = "/proc"
	place, err := openPath(over)
	if err != nil {
		return nil, err
	}
	defer place.Close()
	if err := moveMount(skeleton, place); err != nil {
		return nil, err
	}
	return openPath(over)
}

// order lists the places, those above before those below.
func (r *root) order() []string {
	paths := make([]string, 0, len(r.places))
	for path := range r.places {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// attach puts a place into a root, and makes the directories above it.
func (p *place) attach(top *os.File, path string) error {
	dir, err := makeParents(top, path)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(path)
	if p.mount == nil {
		err := unix.Symlinkat(p.link, int(dir.Fd()), name)
		if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EROFS) { // a mount shows it, or what is there instead
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
	return moveMount(p.mount, at) // its descriptor goes with this program
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
