package disk

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A mount is one line of /proc/self/mountinfo.
type mount struct {
	id     uint64
	device string // major:minor
	root   string // the directory of the file system that is mounted
	point  string // the directory where the file system is mounted
	kind   string
}

// mounts lists the mounts that this process sees. Without /proc it lists none.
func mounts() (list []mount) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		dash := slices.Index(fields, "-")
		if len(fields) < 6 || dash < 0 || dash+1 >= len(fields) {
			continue
		}
		id, err := strconv.ParseUint(fields[0], 10, 64)
		if err == nil {
			list = append(list, mount{id: id, device: fields[2], root: unescape(fields[3]), point: unescape(fields[4]), kind: fields[dash+1]})
		}
	}
	return list
}

// unescape decodes the octal escapes with which the kernel writes blanks in a path.
func unescape(path string) string {
	if !strings.Contains(path, `\`) {
		return path
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// MountedNames returns the names of a real directory in all places where its file system, or a
// part of it, is mounted. The name through which most of the file system is visible comes first,
// so all names of a directory lead to the same first one. It treats subvolumes of btrfs as
// separate file systems.
func MountedNames(dir string) []string {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_MNT_ID, &st) != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return nil
	}
	all := mounts()
	at := slices.IndexFunc(all, func(m mount) bool { return m.id == st.Mnt_id })
	if at < 0 || all[at].kind == "btrfs" {
		return nil
	}
	own := all[at]
	rest, ok := below(own.point, dir)
	if !ok {
		return nil
	}
	inner := filepath.Join(own.root, rest)
	self, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	same := slices.DeleteFunc(all, func(m mount) bool { return m.device != own.device })
	slices.SortStableFunc(same, func(a, b mount) int {
		return cmp.Or(cmp.Compare(len(a.root), len(b.root)), cmp.Compare(len(a.point), len(b.point)), strings.Compare(a.point, b.point))
	})
	var names []string
	for _, m := range same {
		rest, ok := below(m.root, inner)
		if !ok {
			continue
		}
		name := filepath.Join(m.point, rest)
		if info, err := os.Lstat(name); err == nil && os.SameFile(info, self) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// below returns the path from one directory to another in it.
func below(dir, path string) (rest string, ok bool) {
	rest, err := filepath.Rel(dir, path)
	return rest, err == nil && filepath.IsLocal(rest)
}
