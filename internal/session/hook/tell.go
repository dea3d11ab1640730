package hook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/deferred"
)

// compare reports what a command changed in files that others hold.
func (v *visit) compare(ctx context.Context, began session.Call) error {
	list, err := v.session.Compare(ctx, began, v.app.Config.Sessions.Uncovered == config.PutBack)
	if len(list) > mostTold {
		v.out.tellBoth(manyUncovered(list))
		return err
	}
	for _, u := range list {
		v.out.tellBoth(uncovered(u))
	}
	return err
}

// mostTold limits the changes that are reported one by one. A formatter may make many.
const mostTold = 5

// manyUncovered reports many changes in one message, with their number for each holder.
func manyUncovered(list []session.Uncovered) string {
	const named = 3
	counts := map[string]int{}
	var holders, paths []string
	kept, back, doubted := 0, 0, 0
	for i, u := range list {
		name := u.Holder.Name()
		if counts[name]++; counts[name] == 1 {
			holders = append(holders, name)
		}
		if i < named {
			paths = append(paths, oneLine(u.Path))
		}
		if u.Rescue != "" {
			kept++
		}
		if u.Back {
			back++
		} else if u.Doubt != "" {
			doubted++
		}
	}
	for i, name := range holders {
		holders[i] = fmt.Sprintf("%d of %s", counts[name], name)
	}
	text := fmt.Sprintf("UNCOVERED %d files that others hold were changed or removed while your command ran: %s. They are %s, and %d more.",
		len(list), strings.Join(holders, ", "), strings.Join(paths, ", "), len(list)-named)
	if back > 0 {
		text += fmt.Sprintf(" %d have been restored to their holders' versions.", back)
	}
	if doubted > 0 {
		text += fmt.Sprintf(" %d may have been changed by another program.", doubted)
	}
	return text + fmt.Sprintf(" %d changes are kept: lockkeeper rescue list. Run the command on your own files only, and do not write these again.", kept)
}

func uncovered(u session.Uncovered) string {
	did := "changed"
	if u.Gone {
		did = "removed"
	}
	text := fmt.Sprintf("UNCOVERED %s was %s while your command ran; it is %s.", u.Path, did, u.Holder)
	switch {
	case u.Doubt != "":
		text += " It may not have been you: " + u.Doubt + "."
	case u.Back:
		text += " The holder's version has been restored."
	}
	if u.NotBack != "" {
		text += " The holder's version could not be restored: " + u.NotBack + "."
	}
	if u.Rescue != "" {
		text += " The change is kept: lockkeeper rescue show " + u.Rescue + "."
	}
	return text + " Do not write it again."
}

// disturbed reports changes to files that the session holds: those made without a lock, and those
// made while the finished command ran.
func (v *visit) disturbed(ctx context.Context, ended session.Call) error {
	mine, err := v.session.CommittedMine(ctx)
	if len(mine) > 0 {
		m := mine[0]
		by := "which you did not make"
		if m.During {
			by = "made while your command ran, by the command or by another program"
		}
		v.out.tellBoth(fmt.Sprintf("COMMITTED %s, which you hold, is in commit %.12s, %s%s. Finish your work and commit the rest. next: git show --stat %.12s", oneLine(m.Path), m.Commit, by, moreFiles(mine), m.Commit))
	}
	if err != nil {
		return err
	}
	list, err := v.session.Disturbed(ctx, ended)
	if len(list) > mostTold {
		v.out.tellBoth(manyDisturbed(list))
	}
	for _, d := range list {
		if len(list) <= mostTold {
			v.out.tellBoth(d.String())
		}
		v.session.NotifyBeside(d)
	}
	return err
}

// manyDisturbed reports many changes in one message, with their number for each writer.
func manyDisturbed(list []session.Disturbance) string {
	const named = 3
	counts := map[string]int{}
	var writers, paths []string
	kept := 0
	for i, d := range list {
		by := d.By.String()
		if d.DuringCommand && !d.By.Sure {
			by = "your command or another program"
		}
		if counts[by]++; counts[by] == 1 {
			writers = append(writers, by)
		}
		if i < named {
			paths = append(paths, oneLine(d.Path))
		}
		if d.Rescue != "" {
			kept++
		}
	}
	for i, by := range writers {
		writers[i] = fmt.Sprintf("%d by %s", counts[by], by)
	}
	return fmt.Sprintf("DISTURBED %d files, which you hold, were changed or removed without a lock: %s. They are %s, and %d more. Read them again before you continue. Your versions of %d are kept: lockkeeper rescue list.",
		len(list), strings.Join(writers, ", "), strings.Join(paths, ", "), len(list)-named, kept)
}

// committed reports files of others in the commits that were made while a command ran.
func (v *visit) committed(ctx context.Context, began session.Call) error {
	list, err := v.session.CommittedOfOthers(ctx, began)
	if len(list) > 0 {
		c := list[0]
		v.out.tellBoth(fmt.Sprintf("COMMITTED %s is in commit %.12s, made while your command ran, by the command or by another program%s; it is %s. Do not push that commit; tell your user. next: git show --stat %.12s", oneLine(c.Path), c.Commit, moreFiles(list), c.Holder, c.Commit))
	}
	return err
}

// moreFiles counts the files after the first one.
func moreFiles(list []session.Committed) string {
	if n := len(list) - 1; n > 0 {
		return fmt.Sprintf(", as are %d more files", n)
	}
	return ""
}

// news reports files that became free and the results of deferred patches.
func (v *visit) news(ctx context.Context) error {
	free, err := v.session.News(ctx)
	if v.out.Model = append(v.out.Model, free...); err != nil {
		return err
	}
	beside, err := v.session.Beside(ctx)
	for _, u := range beside {
		v.out.tellBoth("UNCHECKED " + oneLine(u.String()) + ": it works here, and its hooks have not reported. Nothing refuses its writes, also to files that you hold. Tell your user. next: lockkeeper status")
	}
	if err != nil {
		return err
	}
	queue := deferred.Open(v.app)
	_, landing := queue.Land(ctx)
	ended, err := queue.News(v.call.Session)
	v.out.Model = append(v.out.Model, ended...)
	return errors.Join(landing, err)
}

// unguarded reports files that configure the checks and that were removed during a command:
// git clean and git stash remove uncommitted files, a checkout removes files committed later.
func (v *visit) unguarded(began session.Call) {
	now := project.Configured(v.codebase.root)
	for _, name := range began.Guarded {
		if !slices.Contains(now, name) {
			v.out.tellBoth(fmt.Sprintf("GONE %s was removed while your command ran; without it, writes may not be checked. Write nothing until a person has restored it: with git, or lockkeeper init and lockkeeper doctor.", name))
		}
	}
}

// begin starts a session or a turn and reports the files that became free.
func (v *visit) begin(ctx context.Context) error {
	v.session.EndSubagent() // an interruption ends all subagents that do not work in the background; one that continues registers again with its next write
	if err := errors.Join(v.compareLate(ctx), v.registry.RestoreModes(ctx)); err != nil {
		return err
	}
	if v.session.New {
		s := v.session.Info()
		v.out.Model = append(v.out.Model, fmt.Sprintf("Lockkeeper knows this session as %s. Files that you write are yours until the end of the turn; a refusal says what to do.", s.Callsign))
	}
	return v.news(ctx)
}

// compareLate compares the files after calls without a reported end, and the files that the session
// holds.
func (v *visit) compareLate(ctx context.Context) error {
	began, err := v.session.EndAll(ctx)
	if err != nil {
		return err
	}
	return errors.Join(v.compare(ctx, began), v.committed(ctx, began), v.disturbed(ctx, began), v.lost(ctx))
}

// compareInTime compares in at most half of the remaining time, and leaves the rest for the
// release.
func (v *visit) compareInTime(ctx context.Context) error {
	until, _ := ctx.Deadline() // every call has a deadline
	half, cancel := context.WithTimeout(ctx, time.Until(until)/2)
	defer cancel()
	return v.compareLate(half)
}

// leave ends the session. It first compares the files after calls without a reported end. If
// the host restarts the session, the next session of the process compares them.
func (v *visit) leave(ctx context.Context) (err error) {
	if !v.call.Restarts {
		err = v.compareInTime(ctx)
	}
	return errors.Join(err, v.session.Leave(ctx, v.call.Restarts))
}

// stop compares the files again, then releases everything even if the comparison fails. While a
// subagent continues to work, the session keeps its claims. The end of the subagent starts another
// turn, and the end of that turn releases them.
func (v *visit) stop(ctx context.Context) error {
	err := v.compareInTime(ctx)
	if v.session.Continue(v.call.Running) {
		return err
	}
	if releasing := v.session.Release(ctx); releasing != nil {
		return errors.Join(err, releasing)
	}
	_, landing := deferred.Open(v.app).Land(ctx)
	return errors.Join(err, landing)
}
