package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
)

var (
	saysMissing  = regexp.MustCompile(`(?i)no such file|not found|could not find|cannot find|cannot open|permission denied|ENOENT|EACCES`)
	saysReadOnly = regexp.MustCompile(`(?i)read-only file ?system|EROFS`)
	absolutePath = regexp.MustCompile(`(?:^|[\s'"\x60(=\[])(/[^\s'"\x60:;,()\[\]<>]+)`)
)

// warnHidden warns people if a command failed because of the sandbox: it could not find a file that
// exists on this machine, or could not write one. Agents are not told: otherwise they could find out
// which files exist outside their sandbox.
func (l *batchRun) warnHidden(q question, failed *flow.CheckRun) error {
	said, err := l.p.endOf(failed.Output, maxShown)
	if err != nil {
		return err
	}
	for _, r := range l.p.refusals(fromWorkspace(said, l.w), l.w, failed.Command) {
		l.p.news(NewsWarning, q, lockkeeper.JoinNext(r.fact, r.next))
	}
	return nil
}

// A refusalBySandbox is a path that a failed command needed and that the sandbox kept from it.
type refusalBySandbox struct{ fact, next string }

// refusals lists what the output of a failed command reports as missing or read-only because of the
// sandbox.
func (p *Pipeline) refusals(output string, w *workspace.Workspace, command string) (list []refusalBySandbox) {
	if !p.opt.Sandbox.HoldsReads() {
		return nil
	}
	if path := hiddenPath(output, w); path != "" {
		list = append(list, refusalBySandbox{fmt.Sprintf("%s exists on this machine, but the sandbox may not show it to %q", path, command),
			"add it to agent.read in lockkeeper.yaml if the command needs it"})
	}
	if path := readOnlyPath(output, w.Dir()); path != "" {
		list = append(list, refusalBySandbox{fmt.Sprintf("%q failed because it may not write %s in the sandbox, not because of the change", command, path),
			"add its directory to agent.caches in lockkeeper.yaml, or make the command write below $TMPDIR"})
	}
	return list
}

// readOnlyPath returns the first path outside the workspace that the output reports as read-only.
func readOnlyPath(output, workspace string) string {
	for line := range strings.Lines(output) {
		if !saysReadOnly.MatchString(line) {
			continue
		}
		for _, found := range absolutePath.FindAllStringSubmatch(line, -1) {
			if path := filepath.Clean(found[1]); path != workspace && !strings.HasPrefix(path, workspace+"/") {
				return path
			}
		}
	}
	return ""
}

// hiddenPath returns the first existing file outside the workspace that the output reports
// as missing or unreadable. Where a link in the workspace leads outside, it returns the target.
func hiddenPath(output string, w *workspace.Workspace) string {
	workspaces := filepath.Dir(w.Home()) + "/"
	for line := range strings.Lines(output) {
		if !saysMissing.MatchString(line) {
			continue
		}
		for _, found := range absolutePath.FindAllStringSubmatch(line, -1) {
			path, err := filepath.EvalSymlinks(w.Find(found[1]))
			if err != nil || path == "/" || strings.HasPrefix(path, workspaces) || strings.HasPrefix(path, "/dev/") {
				continue // the path is missing, or no setting can make it visible
			}
			return path
		}
	}
	return ""
}

// endOf returns the last n bytes of an output file. Its path is relative to the root.
func (p *Pipeline) endOf(output string, n int64) (string, error) {
	return tailOf(filepath.Join(p.opt.Root.Dir(), filepath.FromSlash(output)), n)
}

// tailOf returns the last n bytes of a file.
func tailOf(name string, n int64) (_ string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	text := make([]byte, min(info.Size(), n))
	if _, err := f.ReadAt(text, info.Size()-int64(len(text))); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), nil
}

// notice checks which files a command that passed has changed. If it changed a file of the
// batch, the command fails. For other tracked files notice warns people.
func (l *batchRun) notice(ctx context.Context, c checks, run *flow.CheckRun, changes []workspace.Change, out io.Writer) error {
	if run.Exit != 0 {
		return nil
	}
	var own, others []workspace.Change
	for _, change := range changes {
		stored, err := l.isStoredAs(change)
		switch {
		case err != nil:
			return err
		case stored:
		case slices.Contains(l.paths(), change.Path):
			own = append(own, change)
		case change.Was != nil:
			others = append(others, change)
		}
	}
	reverted, err := l.reverted(changes)
	if err != nil {
		return err
	}
	if own = append(own, reverted...); len(own) > 0 {
		run.Exit = exitRewrote
		_, err := fmt.Fprintf(out, "\nthe command changed %s, which the batch changes: it did not test the content that would land\n", someOf(own))
		return err
	}
	ignored, err := l.w.Ignored(ctx, others)
	if err != nil {
		return err
	}
	tracked := others[:0]
	for i, change := range others {
		if !ignored[i] {
			tracked = append(tracked, change)
		}
	}
	if len(tracked) > 0 {
		l.p.news(NewsWarning, l.ask(c.Phase.Name, ""), lockkeeper.JoinNext(fmt.Sprintf("%q changed %s; the changes are undone: %s", run.Command, counted(len(tracked), "file"), someOf(tracked)),
			"check whether the command passes only because of these changes"))
	}
	return nil
}

// reverted lists the files of the batch that were changed back: they are not among the changes in
// the workspace, and do not have the content that the batch stored.
func (l *batchRun) reverted(changes []workspace.Change) (list []workspace.Change, err error) {
	for _, f := range l.files {
		if slices.ContainsFunc(changes, func(c workspace.Change) bool { return c.Path == f.Path }) {
			continue
		}
		base, err := l.w.Base(f.Path)
		if err != nil {
			return nil, err
		}
		if base != f.New {
			list = append(list, workspace.Change{Path: f.Path})
		}
	}
	return list, nil
}

// exitRewrote is the exit status recorded for a command that passed but changed a file of the
// batch.
const exitRewrote = 1
