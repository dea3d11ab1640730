package hook

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/protect"
	"lockkeeper/internal/refusal"
	"lockkeeper/internal/snapshot"
)

// keepTime is how long listing and copying uncommitted files may take. A command is not
// stopped because there are too many of them.
const keepTime = 5 * time.Second

// keep takes a snapshot of uncommitted files before a command of which nobody knows what it
// removes, and returns its id. If some could not be kept, a command that certainly removes
// files is refused, and any other one is let through with a notice.
func (v *visit) keep(ctx context.Context) (id string, err error) {
	if !v.opaque || !v.place.shell {
		return "", nil
	}
	short, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	id, missed, err := v.seat.Keep(short, v.call.ID, v.call.Command)
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		reason := err.Error()
		if short.Err() != nil {
			reason = fmt.Sprintf("it takes longer than %s", keepTime)
		}
		missed = []snapshot.Miss{{Path: ".", Why: "uncommitted files cannot be listed or copied: " + reason}}
	}
	if len(missed) == 0 {
		return id, nil
	}
	if act, hit := v.swept(missed); act != "" {
		names := make([]string, 0, mostNamed)
		for _, m := range hit[:min(len(hit), mostNamed)] {
			names = append(names, m.Path)
		}
		v.refuse(refusal.Unkept(act, names, len(hit), hit[0].Why))
		return "", nil
	}
	text := fmt.Sprintf("NOT KEPT %s: %s.", missed[0].Path, missed[0].Why)
	if len(missed) > 1 {
		text = fmt.Sprintf("NOT KEPT %d uncommitted files, such as %s: %s.", len(missed), missed[0].Path, missed[0].Why)
	}
	if v.seat.Unkept(text) {
		v.out.tellBoth(text + " What a command removes of it cannot be restored.")
	}
	return id, nil
}

// swept is the first act that removes files nobody knows beforehand where some could not be
// kept, and those.
func (v *visit) swept(missed []snapshot.Miss) (act string, hit []snapshot.Miss) {
	for _, s := range v.sweeps {
		dir := protect.Real(s.Dir)
		hit = slices.DeleteFunc(slices.Clone(missed), func(m snapshot.Miss) bool {
			file := filepath.Join(v.place.root, filepath.FromSlash(m.Path))
			return s.Dir != anywhere && m.Path != "." && file != dir && !isBelow(file, dir)
		})
		if len(hit) > 0 {
			return s.Act, hit
		}
	}
	return "", nil
}

// mostLost is how many lost files are told one by one.
const mostLost = 5

// lost tells what commands of the session made of uncommitted files that it did not make.
func (v *visit) lost(ctx context.Context) error {
	list, err := v.seat.Lost(ctx)
	for i, l := range list {
		if i == mostLost || l.Rescue == "" {
			v.out.tellBoth(fmt.Sprintf("REMOVED or overwritten as well: %s. next: lockkeeper rescue list, then lockkeeper rescue restore ID", more(len(list)-i, l.Path)))
			break
		}
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

// oneLine is a name that cannot add lines to a message.
func oneLine(name string) string { return strings.Join(strings.Fields(name), " ") }
