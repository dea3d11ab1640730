package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

var (
	saysMissing  = regexp.MustCompile(`(?i)no such file|not found|could not find|cannot find|cannot open|permission denied|ENOENT|EACCES`)
	absolutePath = regexp.MustCompile(`(?:^|[\s'"\x60(=\[])(/[^\s'"\x60:;,()\[\]<>]+)`)
)

// warnHidden warns people about a file that a failed command could not find although it exists on
// this machine, because the sandbox hides it. Agents are not told: otherwise they could find out
// which files exist outside their sandbox.
func (l *batchRun) warnHidden(q question, failed *flow.CheckRun) error {
	if !l.p.opt.Sandbox.HoldsReads() {
		return nil
	}
	f, err := os.Open(filepath.Join(l.p.opt.Root.Dir(), filepath.FromSlash(failed.Output)))
	if err != nil {
		return err
	}
	said, err := lastBytes(f, maxShown)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if path := hiddenPath(string(said), l.w.Dir()); path != "" {
		l.p.news(NewsWarning, q, lockkeeper.JoinNext(fmt.Sprintf("%s exists on this machine, but the sandbox may not show it to %q", path, failed.Command),
			"add it to agent.read in lockkeeper.yaml if the command needs it"))
	}
	return nil
}

// hiddenPath returns the first existing file outside the workspace that the output reports
// as missing or unreadable. Where a link in the workspace leads outside, it returns the target.
func hiddenPath(output, workspace string) string {
	for line := range strings.Lines(output) {
		if !saysMissing.MatchString(line) {
			continue
		}
		for _, found := range absolutePath.FindAllStringSubmatch(line, -1) {
			path, err := filepath.EvalSymlinks(found[1])
			if err != nil || path == "/" || path == workspace || strings.HasPrefix(path, workspace+"/") || strings.HasPrefix(path, "/dev/") {
				continue // the path does not exist, or no setting could make it visible
			}
			return path
		}
	}
	return ""
}

// lastBytes reads the last n bytes of a file.
func lastBytes(f *os.File, n int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(info.Size(), n))
	if _, err := f.ReadAt(text, info.Size()-int64(len(text))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return text, nil
}
