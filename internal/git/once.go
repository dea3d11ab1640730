package git

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// saidPrefix begins the names of the files that remember texts.
const saidPrefix = "lockkeeper-"

// SayOnce reports whether a hook says a text for the first time in this repository. It remembers
// the text with an empty file in the git directory.
func (g *WorkTree) SayOnce(ctx context.Context, text string) (first bool, err error) {
	out, err := g.run(ctx, "rev-parse", "--git-common-dir")
	if err != nil {
		return false, err
	}
	dir := strings.TrimSuffix(out, "\n")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(g.git.Dir, dir)
	}
	sum := sha256.Sum256([]byte(text))
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%s%x%s", saidPrefix, sum[:6], told)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}
