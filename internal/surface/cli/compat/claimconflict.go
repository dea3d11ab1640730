package compat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// claimBlocked reports who holds the resources of a claim.
type claimBlocked struct {
	conflicts []author.Conflict
	by        author.Instance
	waited    time.Duration // 0: not at all
}

func (e *claimBlocked) Error() string {
	var parts []string
	for _, c := range e.conflicts {
		parts = append(parts, e.told(c))
	}
	s := "nothing was claimed: " + strings.Join(parts, "; ")
	if e.waited > 0 {
		s = fmt.Sprintf("waited %s; ", term.Span(e.waited)) + s
	}
	return lockkeeper.JoinNext(s, e.NextStep())
}

func (e *claimBlocked) told(c author.Conflict) string {
	held := "claimed"
	switch {
	case !c.IsClaim:
		held = "locked"
	case c.Mode == lockkeeper.Read:
		held = "claimed for reading"
	}
	what, who := c.Resource+" is "+held, c.Instance
	if !slices.Contains(c.Resources, c.Resource) {
		what = fmt.Sprintf("%s overlaps %s, which is %s", c.Resource, strings.Join(c.Resources, ", "), held)
	}
	if e.by.Has(c.GrantStatus) {
		who = "this session itself, " + who
	}
	return fmt.Sprintf("%s by %s since %s (%s), %s", what, who, term.Stamp(c.Since), minutesAgo(c.Minutes), c.State)
}

func (e *claimBlocked) NextStep() string {
	other := func(c author.Conflict) bool { return !e.by.Has(c.GrantStatus) }
	stays := func(c author.Conflict) bool { return other(c) && !c.MayOverride() }
	switch {
	case !slices.ContainsFunc(e.conflicts, other):
		return "lockkeeper unclaim the overlapping resources, then claim all of them"
	case slices.ContainsFunc(e.conflicts, stays) && e.waited > 0:
		return "lockkeeper claim status, or a longer --patience"
	case slices.ContainsFunc(e.conflicts, stays):
		return "lockkeeper claim status, or --on-conflict wait"
	case e.by.Agent != "":
		return "tell the author that the holder is gone; on a terminal, lockkeeper claim clear releases its claims"
	}
	return "the holder is gone: --on-conflict override-stale takes the claim over; on a terminal, lockkeeper claim clear releases it"
}

func (e *claimBlocked) Code() lockkeeper.Code {
	if e.waited > 0 {
		return lockkeeper.CodeTimeout
	}
	return lockkeeper.CodeBlocked
}

// Facts returns the conflicts for JSON.
func (e *claimBlocked) Facts() map[string]any { return map[string]any{"conflicts": e.conflicts} }

func minutesAgo(n int) string { return fmt.Sprintf("%s ago", term.Counted(n, "minute")) }

// resolveClaim claims, and for each conflict asks a person or applies --on-conflict. It overrides
// no holder before all conflicts are decided.
func (p *program) resolveClaim(ctx context.Context, au *author.Author, w author.Request, o claimOptions) (*author.Result, error) {
	asks := p.Attended() && w.By.Agent == "" && !o.asked && !p.JSON
	typed := bufio.NewReader(p.In)
	waited, late := time.Duration(0), "" // late is the grant that was not released in time
	for {
		answer, err := au.Claim(ctx, w)
		if answer != nil {
			p.tellAnswer(answer)
		}
		if err != nil || len(answer.Conflicts) == 0 {
			return answer, err
		}
		open := slices.IndexFunc(answer.Conflicts, func(c author.Conflict) bool { return !slices.Contains(w.Override, c.Grant) })
		c := answer.Conflicts[max(open, 0)]
		choice := o.onConflict
		if asks {
			if choice, err = p.askAbout(ctx, au, typed, question{c, late == c.Grant, waited}, o); err != nil {
				return nil, err
			}
		}
		switch {
		case choice == onOverrideStale && (asks || c.MayOverride()):
			w.Override = append(w.Override, c.Grant)
		case choice == onWait && (asks || waited == 0):
			began := p.Now()
			answer, timedOut, err := p.awaitClaim(ctx, au, w, c, o)
			if err != nil || answer != nil {
				return answer, err
			}
			if waited += p.Now().Sub(began); timedOut {
				late = c.Grant
			}
		case asks:
			return nil, &command.ExitError{Code: command.ExitBlocked, Err: errors.New("canceled; nothing was claimed or changed")}
		default:
			return nil, &claimBlocked{conflicts: answer.Conflicts, by: w.By, waited: waited}
		}
	}
}

// awaitClaim retries a claim. It returns no result if the blocking holder turns out to be gone or
// stale. When the patience ends, it tries a last time and then returns timedOut.
func (p *program) awaitClaim(ctx context.Context, au *author.Author, w author.Request, c author.Conflict, o claimOptions) (_ *author.Result, timedOut bool, err error) {
	poll, patience := max(time.Duration(o.poll), time.Millisecond), time.Duration(o.patience)
	if !p.JSON {
		fmt.Fprintf(p.Err, "Waiting for %s, checking every %s for up to %s …\n", term.Clean(c.Resource), term.Span(poll), term.Span(patience))
	}
	ctx, stop := command.Interruptible(ctx)
	defer stop()
	after := p.After
	if after == nil {
		after = time.After
	}
	for limit := p.Now().Add(patience); ; {
		left := limit.Sub(p.Now())
		if left <= 0 {
			return nil, true, nil
		}
		select {
		case <-ctx.Done():
			return nil, false, command.Interrupted(ctx, context.Cause(ctx))
		case <-after(min(poll, left)):
		}
		answer, err := au.Claim(ctx, w)
		if err != nil {
			return nil, false, command.Interrupted(ctx, err)
		}
		p.tellAnswer(answer)
		if len(answer.Conflicts) == 0 {
			return answer, false, nil
		}
		for _, now := range answer.Conflicts {
			if now.Grant == c.Grant && (isStale(now) && !isStale(c) || isGone(now) && !isGone(c)) {
				return nil, false, nil
			}
		}
	}
}

// isStale reports whether a claim is old without a sign of life.
func isStale(c author.Conflict) bool { return c.IsClaim && c.Stale }

// isGone reports whether the holder of a claim is gone.
func isGone(c author.Conflict) bool { return c.IsClaim && c.State == author.Gone }

// A question asks a person about one holder of a resource.
type question struct {
	author.Conflict
	late   bool // a wait for the grant has timed out
	waited time.Duration
}

// askAbout shows who holds a resource and lets a person choose.
func (p *program) askAbout(ctx context.Context, au *author.Author, typed *bufio.Reader, q question, o claimOptions) (string, error) {
	c := q.Conflict
	if q.late {
		fmt.Fprintf(p.Err, "%s is still locked after %s.\n\n", term.Clean(c.Resource), term.Span(q.waited))
	}
	if isStale(c) {
		fmt.Fprintf(p.Err, "⚠️ %s has a stale lock (older than %s).\n\n", term.Clean(c.Resource), inWords(au.StaleAfter()))
	} else {
		fmt.Fprintf(p.Err, "⚠️ %s is currently locked by another instance.\n\n", term.Clean(c.Resource))
	}
	p.showLockDetails(c)
	if c.IsClaim {
		p.showUncommitted(ctx, au, c)
	}
	if isStale(c) || isGone(c) {
		fmt.Fprint(p.Err, whyStale(c), "\n\n")
	}
	choices, values := q.options(time.Duration(o.poll))
	return p.choose(typed, choices, values)
}

// options returns what a person can choose, and what each choice means: override or cancel if
// the lock is stale, cancel or override after a wait, and otherwise also wait.
func (q question) options(poll time.Duration) (choices, values []string) {
	wait, cancel, override := fmt.Sprintf("Wait for lock to clear (checks every %s)", inWords(poll)), "Cancel operation", "Override lock (not recommended)"
	switch {
	case !q.IsClaim: // an agent or a job, which cannot be overridden here
		return []string{wait, cancel}, []string{onWait, onCancel}
	case isStale(q.Conflict):
		return []string{"Override stale lock and continue", cancel}, []string{onOverrideStale, onCancel}
	case isGone(q.Conflict):
		override = "Override lock (recommended: its instance is gone)"
	}
	if q.late {
		return []string{cancel, override}, []string{onCancel, onOverrideStale}
	}
	return []string{wait, cancel, override}, []string{onWait, onCancel, onOverrideStale}
}

// whyStale describes the holder of a lock that is stale or whose process is gone.
func whyStale(c author.Conflict) string {
	if c.Process == lockkeeper.ProcessAlive.String() {
		return "Its instance still runs, but has not used the lock for that long."
	}
	return "This lock may be from a crashed instance."
}

// inWords returns a duration in words if it is a whole number of minutes or seconds.
func inWords(d time.Duration) string {
	switch {
	case d >= time.Minute && d%time.Minute == 0:
		return term.Counted(int(d/time.Minute), "minute")
	case d >= time.Second && d%time.Second == 0:
		return term.Counted(int(d/time.Second), "second")
	}
	return d.String()
}

func (p *program) showLockDetails(c author.Conflict) {
	fmt.Fprintf(p.Err, "Lock details:\n- Resource: %s\n- Locked at: %s (%s)\n- Instance: %s\n", term.Clean(c.Resource), term.Stamp(c.Since), minutesAgo(c.Minutes), term.Clean(c.Instance))
	if c.Who != "" {
		fmt.Fprintf(p.Err, "- Person: %s\n", term.Clean(c.Who))
	}
	state := string(c.State)
	if c.Process != "" && c.Process != lockkeeper.ProcessUnknown.String() {
		state += ", its process is " + c.Process
	}
	if quiet := p.Now().Sub(c.Seen); quiet >= time.Minute && c.Seen.After(c.Since) {
		state += ", last sign of life " + minutesAgo(int(quiet.Minutes()))
	}
	fmt.Fprintf(p.Err, "- State: %s\n", state)
	if c.Reason != "" {
		fmt.Fprintf(p.Err, "- For: %s\n", term.Clean(c.Reason))
	}
	if !slices.Equal(c.Resources, []string{c.Resource}) {
		fmt.Fprintf(p.Err, "- Held with it: %s\n", term.Clean(strings.Join(c.Resources, ", ")))
	}
	fmt.Fprintln(p.Err)
}

// showUncommitted prints the uncommitted changes of a holder, which an override takes over.
func (p *program) showUncommitted(ctx context.Context, au *author.Author, c author.Conflict) {
	list, err := au.Uncommitted(ctx, c.GrantStatus)
	switch {
	case err != nil:
		fmt.Fprintf(p.Err, "Cannot read the uncommitted changes: %s\n\n", term.Clean(err.Error()))
		return
	case len(list) == 0:
		return
	}
	fmt.Fprintln(p.Err, "Uncommitted changes (an override takes them over, and keeps a copy in lockkeeper rescue):")
	for _, u := range list {
		what := fmt.Sprintf("%s added, %d removed", term.Counted(u.Added, "word"), u.Removed)
		if u.Deleted {
			what = "deleted"
		}
		fmt.Fprintf(p.Err, "- %s: %s\n", term.Clean(u.Path), what)
		for _, line := range u.Begins {
			fmt.Fprintf(p.Err, "    %s\n", term.Clean(line))
		}
	}
	fmt.Fprintln(p.Err)
}

// choose prints options and reads the number of one. It asks again after an invalid answer.
func (p *program) choose(typed *bufio.Reader, choices, values []string) (string, error) {
	fmt.Fprintln(p.Err, "Options:")
	for i, choice := range choices {
		fmt.Fprintf(p.Err, "%d. %s\n", i+1, choice)
	}
	for {
		fmt.Fprintf(p.Err, "\nChoose option (1-%d): ", len(choices))
		line, err := typed.ReadString('\n')
		for i := range choices {
			if strings.TrimSpace(line) == fmt.Sprint(i+1) {
				return values[i], nil
			}
		}
		if err == io.EOF {
			return onCancel, nil
		}
		if err != nil {
			return "", err
		}
	}
}
