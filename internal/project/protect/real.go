package protect

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Real resolves an absolute path as the kernel does: it follows every link, and ".." means
// the parent of the link's target. Parts that do not exist or cannot be read stay as they
// are.
func Real(file string) string {
	const most = 255 // links, as many as any kernel follows
	rest := strings.Split(file, "/")
	at, links := "/", 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > most {
			at = next
			continue
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at
}
