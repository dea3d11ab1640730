package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
	"lockkeeper/store"
)

type auditOptions struct {
	since, holder, path, kind string
	limit                     int
}

func (p *program) auditCommand() *cobra.Command {
	var o auditOptions
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List events, newest last",
		Long: `List events, newest last: every acquire, refusal, release, recovery and forced act, and
every landing and gap, with who, when and why. A gap is a write that was refused, or made
without a lock, and kept: see lockkeeper rescue. With --json each line is one object.
By default it lists the last 100 events.`,
		Example: `  lockkeeper audit --since 1h
  lockkeeper audit --holder otter --path app/user.rb
  lockkeeper audit --kind landed
  lockkeeper audit --since 2026-01-31T09:00:00Z --json | jq -r .kind`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			since, err := parseSince(o.since, p.Now())
			if err != nil {
				return err
			}
			if o.kind, err = parseKind(o.kind); err != nil {
				return err
			}
			if err := command.NotNegative(o.limit); err != nil {
				return err
			}
			if o.since != "" && !cmd.Flags().Changed("limit") {
				o.limit = 0
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.audit(cmd.Context(), a, o, since) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "", "only later events: a `duration` such as 1h or 7d, or a time such as 2026-01-31T09:00:00Z")
	f.StringVar(&o.holder, "holder", "", "only events of this `holder`, or of an item such as j12")
	f.StringVar(&o.path, "path", "", "only events about this `path`")
	f.StringVar(&o.kind, "kind", "", "only events of this `kind`, such as acquired, landed or gap, a write that was refused or had no lock")
	f.IntVar(&o.limit, "limit", 100, "how many of the newest events to list; 0: all")
	return cmd
}

// parseSince parses a duration before now, or a time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := config.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, form := range []string{time.RFC3339, term.StampForm, time.DateTime, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &lockkeeper.InputError{Field: "since", Value: text, Reason: "neither a duration nor a time", Next: "write it like 90s, 1h, 7d, 2026-01-31 or 2026-01-31T09:00:00Z"}
}

func (p *program) audit(ctx context.Context, a *project.Project, o auditOptions, since time.Time) error {
	want, err := o.filter(a)
	if err != nil {
		return err
	}
	after, err := eventBefore(ctx, a, since, o.limit, want)
	if err != nil {
		return err
	}
	shown := 0
	for ev, err := range command.Events(ctx, a, store.EventQuery{After: after}) {
		switch {
		case err != nil:
			return err
		case !want(ev):
			continue
		case p.JSON:
			err = p.PrintLine(ev)
		default:
			_, err = fmt.Fprintln(p.Out, eventLine(ev, term.Few(p.Out, pathsInLine)))
		}
		if shown++; err != nil {
			return err
		}
	}
	if shown == 0 && !p.JSON {
		fmt.Fprintln(p.Err, "no events match")
	}
	return nil
}

// eventBefore returns the number of the event before the first one to show. That is the last event
// before the time since. If limit matches are found first, it is the event before them. The events
// are read backwards and not kept, so that at most one page is in memory.
func eventBefore(ctx context.Context, a *project.Project, since time.Time, limit int, want func(lockkeeper.Event) bool) (uint64, error) {
	if since.IsZero() && limit == 0 {
		return 0, nil
	}
	found := 0
	for ev, err := range command.Events(ctx, a, store.EventQuery{Latest: true}) {
		if err != nil || ev.At.Before(since) || limit > 0 && found == limit {
			return ev.Seq, err
		}
		if want(ev) {
			found++
		}
	}
	return 0, nil
}

func (o auditOptions) filter(a *project.Project) (func(lockkeeper.Event) bool, error) {
	concerns := func(lockkeeper.Event) bool { return true }
	if o.path != "" {
		l, err := a.Resolve(lockkeeper.Read, o.path)
		if err != nil {
			return nil, err
		}
		concerns = func(ev lockkeeper.Event) bool { return view.Concerns(ev, l.Target) }
	}
	return func(ev lockkeeper.Event) bool {
		of := o.holder == "" || slices.Contains([]string{ev.Holder, ev.Actor.Name, sched.ItemID(ev)}, o.holder)
		return of && (o.kind == "" || o.kind == string(ev.Kind)) && concerns(ev)
	}, nil
}

const pathsInLine = 3

// eventLine returns an event in one line, with up to limit paths and holders.
func eventLine(ev lockkeeper.Event, limit int) string {
	line := fmt.Sprintf("%s  %-14s %s", term.Stamp(ev.At), command.Words(ev.Kind), whoOf(ev))
	for i, l := range ev.Locks {
		if i == limit && i+1 < len(ev.Locks) {
			line += fmt.Sprintf(", … %d more", len(ev.Locks)-i)
			break
		}
		sep := ", "
		if i == 0 {
			sep = "  "
		}
		line += sep + l.Mode.String() + " " + term.Clean(l.Path)
	}
	switch ev.Kind {
	case lockkeeper.EventLanded:
		line += fmt.Sprintf("  landing %d", ev.Seq)
		if undoes := ev.Data["undoes"]; undoes != "" {
			line += ", undoes landing " + term.Clean(undoes)
		}
	case lockkeeper.EventReplaced, lockkeeper.EventUndone, lockkeeper.EventFinished:
		if landing := ev.Data["landing"]; landing != "" {
			line += "  landing " + term.Clean(landing)
		}
	case lockkeeper.EventGap:
		line += "  " + term.Clean(view.GapText(ev))
	}
	if len(ev.Conflicts) > 0 {
		line += "  because of " + locks.WaitsFor(ev.Conflicts, limit)
	}
	if ev.Actor.Kind != lockkeeper.ActorHolder {
		line += fmt.Sprintf("  by %s (%s)", term.Clean(ev.Actor.Name), ev.Actor.Kind)
	}
	if ev.Reason != "" {
		line += "  " + term.Clean(lockkeeper.LocalTimes(ev.Reason))
	}
	if ev.GrantID != "" {
		line += "  " + ev.GrantID
	}
	return line
}

// parseKind parses the kind of events, also in the spelling of audit; "" means all.
func parseKind(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	var known []string
	for _, k := range view.EventKinds() {
		known = append(known, string(k))
	}
	kind := strings.NewReplacer(" ", "_", "-", "_").Replace(text)
	return kind, command.OneOf("kind", kind, known)
}

// whoOf returns the subject of an event: an item with its id and name, a holder, or the actor.
func whoOf(ev lockkeeper.Event) string {
	item := sched.ItemID(ev)
	switch name := ev.Data["workflow"]; {
	case ev.Kind == lockkeeper.EventQueued:
		return fmt.Sprintf("%s (%s)", item, term.Clean(ev.Holder))
	case item != "" && name != "":
		return fmt.Sprintf("%s (%s)", item, term.Clean(name))
	case item != "" && (ev.Holder == "" || ev.Holder == item):
		return "item " + item
	case item != "":
		return fmt.Sprintf("%s (item %s)", term.Clean(ev.Holder), item)
	case ev.Holder == "":
		return term.Clean(ev.Actor.Name)
	}
	return term.Clean(ev.Holder)
}
