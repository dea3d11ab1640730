package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// system lists the paths that every command sees, read-only: programs, libraries, their
// configuration, certificates, name services, and kernel information about the machine. None of
// it belongs to a user.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
	"/nix", "/gnu", "/snap", "/run/current-system",
	"/var/lib/ca-certificates", "/var/lib/dpkg", "/var/cache/fontconfig",
	"/var/lib/sss/mc", "/var/lib/sss/pipes/nss", "/run/nscd/socket",
	"/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm",
}

// leadOut lists files of the system that are often links to files outside of it.
var leadOut = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/localtime"}

// guarded lists directories of the system that may hold secrets, and how many levels
// deep to search them; 0: all levels.
var guarded = map[string]int{"/etc": 0, "/usr/local/etc": 0, "/opt": 2}

// systemPaths returns the directories and files of the system that this machine has,
// without links.
func systemPaths() []string {
	var list []string
	for _, path := range system {
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			list = append(list, path)
		}
	}
	for _, path := range leadOut {
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.ContainsFunc(list, func(dir string) bool { return within(real, dir) }) {
			list = append(list, real)
		}
	}
	return list
}

// systemSecrets returns the files and directories of the system that this user can read but not
// every user can: password hashes, host keys, private certificates. The kernel already denies
// most of them to an ordinary user.
func systemSecrets() []string {
	var list []string
	for dir, depth := range guarded {
		list = secretsIn(list, dir, depth)
	}
	return list
}

// secretsIn adds the secrets below a directory. It skips paths that cannot be read,
// because the command cannot read them either.
func secretsIn(list []string, dir string, depth int) []string {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.Type()&fs.ModeSymlink != 0 {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		public := fs.FileMode(0o004)
		if e.IsDir() {
			public = 0o005
		}
		switch {
		case info.Mode()&public != public:
			if unix.Access(path, unix.R_OK) == nil || e.IsDir() && unix.Access(path, unix.X_OK) == nil {
				list = append(list, path)
			}
		case e.IsDir() && depth != 1:
			list = secretsIn(list, path, depth-1)
		}
	}
	return list
}

// without returns paths that cover a directory except the hidden ones, as few as
// possible. Landlock needs this because its rules can only permit, not deny.
func without(dir string, hidden []string) []string {
	inside := func(h string) bool { return within(h, dir) }
	if slices.Contains(hidden, dir) {
		return nil
	}
	if !slices.ContainsFunc(hidden, inside) {
		return []string{dir}
	}
	var list []string
	entries, _ := os.ReadDir(dir) // nothing is permitted in a directory that cannot be listed
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			list = append(list, without(filepath.Join(dir, e.Name()), hidden)...)
		}
	}
	return list
}

// linksTo finds the symbolic links on the way to a path, each with its text.
func linksTo(path string) map[string]string {
	const most = 40 // the kernel's limit for links in one path
	found := map[string]string{}
	for range most {
		at, text := firstLink(path)
		if at == "" {
			break
		}
		found[at] = text
		if !filepath.IsAbs(text) {
			text = filepath.Join(filepath.Dir(at), text)
		}
		path = filepath.Join(text, path[len(at):])
	}
	return found
}

// firstLink returns the first part of a path that is a link, and the text of the link.
func firstLink(path string) (at, text string) {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		if text, err := os.Readlink(path[:i]); err == nil {
			return path[:i], text
		}
	}
	return "", ""
}
