package hook

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/project/protect"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/internal/session/snapshot"
)

// keepTime limits the time for listing and copying uncommitted files. Exceeding it is no reason
// to refuse a build.
const keepTime = 5 * time.Second

// all stands for every uncommitted file when they cannot be listed.
const all = "."

// keep takes a snapshot of uncommitted files before an opaque command, and returns its id.
// If some files could not be copied, it refuses a command that certainly removes files where
// they are, and lets any other command through with a notice.
func (v *visit) keep(ctx context.Context) (id string, err error) {
	if !v.opaque || !v.codebase.shell {
		return "", nil
	}
	short, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	id, missed, err := v.session.Keep(short, v.call.ID, v.call.Command)
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		reason := err.Error()
		if short.Err() != nil {
			reason = fmt.Sprintf("it takes longer than %s", keepTime)
		}
		missed = []snapshot.Miss{{Path: all, Why: reason}}
	}
	if len(missed) == 0 {
		return id, nil
	}
	if act, hit := v.swept(missed); act != "" {
		names := make([]string, 0, mostNamed)
		for _, m := range hit[:min(len(hit), mostNamed)] {
			if m.Path != all {
				names = append(names, m.Path)
			}
		}
		v.refuse(refusal.Unkept(act, names, len(hit), hit[0].Why))
		return "", nil
	}
	text := fmt.Sprintf("NOT KEPT %s: %s.", missed[0].Path, missed[0].Why)
	switch {
	case missed[0].Path == all:
		text = fmt.Sprintf("NOT KEPT: no uncommitted file was copied: %s.", missed[0].Why)
	case len(missed) > 1:
		text = fmt.Sprintf("NOT KEPT %d uncommitted files, such as %s: %s.", len(missed), missed[0].Path, missed[0].Why)
	}
	if v.session.Unkept(text) {
		v.out.tellBoth(text + " A file without a copy cannot be restored after a command removes or overwrites it. Before you run such a command, copy the file elsewhere, or commit it if it is yours.")
	}
	return id, nil
}

// swept returns the first part of the command that sweeps a directory with files that could
// not be copied, and these files.
func (v *visit) swept(missed []snapshot.Miss) (act string, hit []snapshot.Miss) {
	for _, s := range v.sweeps {
		dir := protect.Real(s.Dir)
		hit = slices.DeleteFunc(slices.Clone(missed), func(m snapshot.Miss) bool {
			file := filepath.Join(v.codebase.root, filepath.FromSlash(m.Path))
			return s.Dir != anywhere && m.Path != all && file != dir && !isBelow(file, dir)
		})
		if len(hit) > 0 {
			return s.Act, hit
		}
	}
	return "", nil
}

// mostLost limits the lost files that are reported one by one.
const mostLost = 5

// lost reports uncommitted files that the session's commands removed or overwrote and that the
// session did not create.
func (v *visit) lost(ctx context.Context) error {
	list, err := v.session.Lost(ctx)
	unnamed := slices.ContainsFunc(list, func(l session.Loss) bool { return l.Rescue == "" })
	if len(list) > mostLost || unnamed {
		v.out.tellBoth(fmt.Sprintf("REMOVED or overwritten while your command ran: %s. They were not committed, and you did not make them. Copies are kept. next: lockkeeper rescue list", more(len(list), list[0].Path)))
		return err
	}
	for _, l := range list {
		did := "OVERWRITTEN"
		if l.Gone {
			did = "REMOVED"
		}
		v.out.tellBoth(fmt.Sprintf("%s %s while your command ran: it was not committed, and you did not make it. A copy is kept. next: lockkeeper rescue restore %s", did, oneLine(l.Path), l.Rescue))
	}
	return err
}

func more(n int, first string) string {
	if n == 1 {
		return oneLine(first)
	}
	return fmt.Sprintf("%d files, such as %s", n, oneLine(first))
}

// oneLine returns a name without line breaks, so that it cannot add lines to a message.
func oneLine(name string) string { return strings.Join(strings.Fields(name), " ") }
