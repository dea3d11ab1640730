package toolchain

import (
	"bufio"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Found lists the paths that programs need in addition to the system's own directories. All
// paths exist and have no links in them.
type Found struct {
	Read   []string // programs and their libraries
	Caches []Cache  // packages and build results
}

// A Cache is a directory that a tool fills. It may be missing.
type Cache struct {
	Path  string
	Built bool // it has only what tools compile, so an empty one costs no download
}

// Find finds the tools of an environment. It looks up the programs in PATH and adds the paths
// that they need, even if they are in no directory of PATH.
func Find(env func(name string) (string, bool), programs ...string) Found {
	f := &finder{env: env, read: map[string]bool{}, caches: map[string]Cache{}, followed: map[string]bool{}}
	if home, _ := env("HOME"); filepath.IsAbs(home) {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			f.home = real
		}
	}
	f.known()
	path, _ := env("PATH")
	for _, dir := range filepath.SplitList(path) {
		f.directory(dir)
	}
	for _, name := range programs {
		f.program(lookUp(name, path))
	}
	return Found{Read: slices.Sorted(maps.Keys(f.read)), Caches: slices.SortedFunc(maps.Values(f.caches), func(a, b Cache) int { return strings.Compare(a.Path, b.Path) })}
}

// system lists the prefixes of the paths that every command sees anyway.
var system = []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/etc/", "/opt/", "/nix/", "/gnu/", "/snap/"}

func inSystem(path string) bool {
	return slices.ContainsFunc(system, func(dir string) bool { return strings.HasPrefix(path, dir) })
}

type finder struct {
	env      func(string) (string, bool)
	home     string // empty: unknown
	read     map[string]bool
	caches   map[string]Cache
	followed map[string]bool // interpreters that were added
}

// known adds the known directories of tools.
func (f *finder) known() {
	for _, p := range programs {
		for _, path := range f.paths(p) {
			f.add(f.read, path)
		}
	}
	for built, dirs := range map[bool][]toolDir{false: packages, true: builds} {
		for _, p := range dirs {
			for _, path := range f.paths(p) {
				f.cache(path, built)
			}
		}
	}
	for _, name := range certificates {
		if path, _ := f.env(name); path != "" {
			f.add(f.read, path)
		}
	}
}

// paths lists the paths that a tool uses.
func (f *finder) paths(d toolDir) (list []string) {
	value, _ := f.env(d.variable)
	dirs := filepath.SplitList(value)
	if len(dirs) == 0 && d.usual != "" && f.home != "" {
		dirs = []string{filepath.Join(f.home, d.usual)}
	}
	for _, dir := range dirs {
		if d.parts == nil {
			list = append(list, dir)
		}
		for _, part := range d.parts {
			list = append(list, filepath.Join(dir, part))
		}
	}
	return list
}

// cache adds a cache. A missing one must be in the home directory, with no link on the way.
func (f *finder) cache(path string, built bool) {
	if real, ok := f.usable(path); ok {
		if !inSystem(real + "/") {
			f.caches[real] = Cache{real, built}
		}
		return
	}
	if _, err := os.Lstat(path); err == nil || f.home == "" || !strings.HasPrefix(filepath.Clean(path), f.home+"/") {
		return
	}
	above := filepath.Dir(path)
	for above != f.home {
		if _, err := os.Lstat(above); err == nil {
			break
		}
		above = filepath.Dir(above)
	}
	if real, err := filepath.EvalSymlinks(above); err == nil && real == above {
		f.caches[filepath.Clean(path)] = Cache{filepath.Clean(path), built}
	}
}

// add adds a path with its links resolved. It adds neither the home directory nor a
// directory above it, and no path of the system, which commands see anyway. It
// reports whether commands see the path.
func (f *finder) add(to map[string]bool, path string) bool {
	real, ok := f.usable(path)
	if ok && !inSystem(real+"/") {
		to[real] = true
	}
	return ok
}

// usable returns a path with its links resolved, if commands may see it.
func (f *finder) usable(path string) (real string, ok bool) {
	if !filepath.IsAbs(path) {
		return "", false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == "/" || f.home == real || strings.HasPrefix(f.home, real+"/") {
		return "", false
	}
	return real, true
}

// most bounds how many entries of one directory are followed.
const most = 4000

// directory adds a directory of programs and the paths that they use.
func (f *finder) directory(dir string) {
	if !filepath.IsAbs(dir) {
		return
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || inSystem(real+"/") || !f.add(f.read, real) {
		return
	}
	f.around(real)
	entries, _ := os.ReadDir(real) // a directory that cannot be listed has nothing to follow
	for _, e := range entries[:min(len(entries), most)] {
		path := filepath.Join(real, e.Name())
		if e.Type()&fs.ModeSymlink != 0 {
			f.program(path)
		} else if e.Type().IsRegular() {
			f.interpreter(path)
		}
	}
}

// around adds the directories next to a directory of programs: the whole installation if the
// directory is part of one, or else the usual directories.
func (f *finder) around(dir string) {
	top := filepath.Dir(dir)
	if name := filepath.Base(dir); name != "bin" && name != "sbin" || top == f.home || top == filepath.Join(f.home, ".local") {
		return
	}
	for _, name := range inTops {
		if _, err := os.Lstat(filepath.Join(top, name)); err == nil {
			f.add(f.read, top)
			return
		}
	}
	for _, name := range beside {
		f.add(f.read, filepath.Join(top, name))
	}
}

// program adds a program and the paths that it uses.
func (f *finder) program(path string) {
	real, err := filepath.EvalSymlinks(path)
	if path == "" || err != nil {
		return
	}
	if before, _, inPackage := strings.Cut(real, "/node_modules/"); inPackage {
		f.add(f.read, before+"/node_modules")
	} else {
		f.add(f.read, real)
		f.around(filepath.Dir(real))
	}
	f.interpreter(real)
}

// interpreter adds the program that the #! line of a script names.
func (f *finder) interpreter(path string) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	line, err := bufio.NewReader(io.LimitReader(file, 256)).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "#!/") {
		return
	}
	name := strings.Fields(line[2:])[0]
	if !f.followed[name] && !inSystem(name) {
		f.followed[name] = true
		f.program(name)
	}
}

// lookUp finds a program as a shell would. It returns "" if the program is not found.
func lookUp(name, path string) string {
	if filepath.IsAbs(name) {
		return name
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return ""
	}
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Join(dir, name)
		if info, err := os.Stat(at); err == nil && filepath.IsAbs(at) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return at
		}
	}
	return ""
}
