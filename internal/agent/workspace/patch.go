package workspace

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

const (
	maxPatched = 512 << 10 // bytes of a file for which a patch is made
	maxPatches = 16 << 20  // bytes of all patches of one TakeOut
)

// describe makes the patch of a change between text files. The original, if any, must be in
// the temporary file.
func (t *takeOut) describe(c *Taken) error {
	if !c.CanLand() || c.Now != nil && c.File == "" {
		return nil
	}
	var before, after []byte
	var err error
	isText := true
	if c.Was != nil {
		before, isText, err = readText(t.w.top, tempName)
	}
	if err == nil && isText && c.Now != nil {
		after, isText, err = readText(t.aside, filepath.Base(c.File))
	}
	if isClosed(err) || err == nil && !isText {
		return nil
	}
	if err != nil {
		return pathError("read", c.Path, err)
	}
	if patch := makePatch(c.Change, before, after); len(patch) <= t.patches {
		c.Patch = patch
		t.patches -= len(patch)
	}
	return nil
}

// readText reads a file, unless it is too long or not text.
func readText(dir int, name string) (content []byte, isText bool, err error) {
	fd, err := openRegular(dir, name)
	if err != nil {
		return nil, false, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	content, err = io.ReadAll(io.LimitReader(f, maxPatched+1))
	return content, len(content) <= maxPatched && bytes.IndexByte(content, 0) < 0, err
}

// makePatch returns a change in git's patch format.
func makePatch(c Change, before, after []byte) []byte {
	var b bytes.Buffer
	old, now := gitQuote("a/"+c.Path), gitQuote("b/"+c.Path)
	fmt.Fprintf(&b, "diff --git %s %s\n", old, now)
	switch {
	case c.Was == nil:
		fmt.Fprintf(&b, "new file mode %s\n", gitMode(c.Now))
	case c.Now == nil:
		fmt.Fprintf(&b, "deleted file mode %s\n", gitMode(c.Was))
	case gitMode(c.Was) != gitMode(c.Now):
		fmt.Fprintf(&b, "old mode %s\nnew mode %s\n", gitMode(c.Was), gitMode(c.Now))
	}
	hunks := diff.Diff("a", before, "b", after)
	if len(hunks) == 0 {
		return b.Bytes()
	}
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", sideName(c.Was, old), sideName(c.Now, now))
	for range 3 { // replaces the library's header lines
		_, hunks, _ = bytes.Cut(hunks, []byte("\n"))
	}
	b.Write(hunks)
	return b.Bytes()
}

func gitMode(s *State) string {
	if s.Mode&0o111 != 0 {
		return "100755"
	}
	return "100644"
}

// sideName returns the name of one side. A tab ends a name with spaces.
func sideName(s *State, name string) string {
	switch {
	case s == nil:
		return "/dev/null"
	case strings.Contains(name, " "):
		return name + "\t"
	}
	return name
}
