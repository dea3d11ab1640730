package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
	"lockkeeper/rescue"
)

const (
	// maxGaps is how many changes of one call become separate gaps. A person decides on each gap,
	// so a larger number of changes becomes one gap.
	maxGaps = 20
	// maxArchive bounds the content of an archive of changes.
	maxArchive = 256 << 20
	// namedOfMany is how many changes a message names.
	namedOfMany = 3
)

// A refusal is a change that may not land, with the reason.
type refusal struct {
	workspace.Change
	why error
}

// survey lists the changes in a workspace. A large new directory is one change, unless it contains
// files that the grant may write.
func (p *Pipeline) survey(ctx context.Context, t execution, w *workspace.Workspace, readOnly bool) ([]workspace.Change, error) {
	switch g := t.Grant(); {
	case readOnly:
		return w.Survey(ctx, nil)
	case g != nil:
		return w.Survey(ctx, writesOf(g))
	}
	return w.Changes(ctx) // without grants any file may land
}

func writesOf(g *lockkeeper.Grant) (paths []string) {
	for _, l := range g.Locks {
		if l.Mode == lockkeeper.Write {
			paths = append(paths, l.Path)
		}
	}
	return paths
}

// keepOut keeps changes that may not land and returns them as gaps: one gap for each, or one for
// all if there are many. It discards caches and files that git ignores.
func (p *Pipeline) keepOut(ctx context.Context, t execution, q question, w *workspace.Workspace, out []refusal) (gaps []flow.Gap, err error) {
	if len(out) == 0 {
		return nil, nil
	}
	ignored, err := w.Ignored(ctx, changesOf(out))
	if err != nil {
		return nil, err
	}
	var dropped []workspace.Change
	var kept []refusal
	for i, r := range out {
		if ignored[i] {
			dropped = append(dropped, r.Change)
		} else {
			kept = append(kept, r)
		}
	}
	if len(dropped) > 0 {
		p.news(NewsWarning, q, fmt.Sprintf("discarded %s that git ignores or that are caches: %s", counted(filesIn(dropped), "file"), someOf(dropped)))
	}
	answered, err := p.answeredGaps(ctx, q)
	if err != nil {
		return nil, err
	}
	if isMany(changesOf(kept)) {
		gap, err := p.keepGaps(ctx, t, q, w, kept, answered)
		if err != nil {
			return nil, err
		}
		gaps = append(gaps, gap)
	} else {
		for _, r := range kept {
			gap, err := p.keepGap(ctx, t, q, w, r, answered)
			if err != nil {
				return gaps, err
			}
			gaps = append(gaps, gap)
		}
	}
	for _, gap := range gaps {
		p.news(NewsGap, q, gap.Path+": "+gap.Reason)
	}
	return gaps, nil
}

// answeredGaps returns the rescue ids of the gaps of a batch that have an answer. If an agent makes such a change again, it
// is a new gap.
func (p *Pipeline) answeredGaps(ctx context.Context, q question) (ids []string, err error) {
	if q.batch == "" {
		return nil, nil
	}
	_, b, err := p.opt.Progress.BatchOf(ctx, q.unit, q.batch)
	if err != nil || b == nil {
		return nil, err
	}
	for _, g := range b.Gaps() {
		if g.Answer != "" {
			ids = append(ids, g.Rescue)
		}
	}
	return ids, nil
}

// keepGaps keeps many changes in one archive, as one gap.
func (p *Pipeline) keepGaps(ctx context.Context, t execution, q question, w *workspace.Workspace, out []refusal, answered []string) (flow.Gap, error) {
	changes := changesOf(out)
	packed, err := w.Pack(ctx, changes, p.archiveLimit())
	if err != nil {
		return flow.Gap{}, err
	}
	why := extended(out[0].why, "; it is one of "+describe(changes, packed))
	e, err := p.opt.Gate.RefuseAll(ctx, t.Grant(), out[0].Path, func() (io.ReadCloser, error) { return packed.File, nil }, why, answered...)
	if err != nil {
		return flow.Gap{}, err
	}
	return flow.Gap{Path: out[0].Path, Reason: reasonOf(why), Rescue: e.ID, Phase: q.phase, Planned: p.plannedBy(q), At: time.Now().UTC()}, nil
}

// extended adds text to the reason of a refusal. The check that refused stays the same.
func extended(why error, text string) error {
	if v, ok := errors.AsType[*lockkeeper.LockViolationError](why); ok {
		longer := *v
		longer.Reason += text
		return &longer
	}
	return fmt.Errorf("%w%s", why, text)
}

// shelveAll keeps changes of a workspace for lockkeeper rescue. It keeps wanted changes and a few
// others separately, and many others in one archive. It returns how many it kept.
func (p *Pipeline) shelveAll(ctx context.Context, w *workspace.Workspace, changes []workspace.Change, wanted []string, holder, why string) (kept int, err error) {
	isWanted := func(c workspace.Change) bool { return slices.Contains(wanted, c.Path) }
	ignored, err := w.Ignored(ctx, changes)
	if err != nil {
		return 0, err
	}
	var single, rest []workspace.Change
	for i, c := range changes {
		switch {
		case isWanted(c):
			single = append(single, c)
		case !ignored[i]:
			rest = append(rest, c)
		}
	}
	if !isMany(rest) {
		single, rest = append(single, rest...), nil
	}
	for _, c := range single {
		if err := p.shelve(ctx, w, c, holder, why); err != nil {
			return kept, err
		}
		kept++
	}
	if len(rest) == 0 {
		return kept, nil
	}
	packed, err := w.Pack(ctx, rest, p.archiveLimit())
	if err != nil {
		return kept, err
	}
	_, err = p.opt.Gate.Keep(ctx, rescue.Entry{Kind: rescue.Archive, Path: rest[0].Path, Holder: holder, Reason: why + "; " + describe(rest, packed)},
		func() (io.ReadCloser, error) { return packed.File, nil })
	return kept + filesIn(rest), err
}

func (p *Pipeline) archiveLimit() int64 { return min(maxArchive, p.opt.Gate.Rescue().Limits().Entry) }

// isMany reports whether there are too many changes to decide on one by one.
func isMany(changes []workspace.Change) bool {
	return len(changes) > maxGaps || slices.ContainsFunc(changes, func(c workspace.Change) bool { return c.Whole })
}

func changesOf(out []refusal) (list []workspace.Change) {
	for _, r := range out {
		list = append(list, r.Change)
	}
	return list
}

func filesIn(changes []workspace.Change) (n int) {
	for _, c := range changes {
		if c.Whole {
			n += c.Files
		} else {
			n++
		}
	}
	return n
}

// someOf names the first few changes for a message.
func someOf(changes []workspace.Change) string {
	var names []string
	for _, c := range changes[:min(len(changes), namedOfMany)] {
		name := c.Path
		if c.Whole {
			name += "/"
		}
		names = append(names, name)
	}
	if len(changes) > namedOfMany {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

func describe(changes []workspace.Change, packed *workspace.Packed) string {
	text := fmt.Sprintf("%s, kept in one archive: %s", counted(filesIn(changes), "changed file"), someOf(changes))
	if packed.Left > 0 {
		text += fmt.Sprintf("; %s too large, too deep or unreadable, and not kept", counted(packed.Left, "file"))
	}
	return text
}
