package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

func (p *program) auditCommand() *cobra.Command {
	var q view.AuditQuery
	var since, kind string
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List events, newest last",
		Long: `List events, newest last: every acquire, refusal, release, recovery and forced act, and
every landing and gap, with who, when and why. A gap is a write that was refused, or made
without a lock, and kept: see lockkeeper rescue. With --json each line is one object.
By default it lists the last 100 events.

Locks of documents of runs, of .lockkeeper and of .git that came and went in order are left
out, also with --json, and counted in other events; --internal lists them. Events of one
--holder or about one --path are complete.`,
		Example: `  lockkeeper audit --since 1h
  lockkeeper audit --holder otter --path app/user.rb
  lockkeeper audit --kind landed
  lockkeeper audit --internal --limit 0 --json > audit.jsonl
  lockkeeper audit --since 2026-01-31T09:00:00Z --json | jq -r .kind`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if q.Since, err = parseSince(since, p.Now()); err != nil {
				return err
			}
			if q.Kinds, err = parseKind(kind); err != nil {
				return err
			}
			if err := command.NotNegative(q.Limit); err != nil {
				return err
			}
			if since != "" && !cmd.Flags().Changed("limit") {
				q.Limit = 0
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.audit(cmd.Context(), a, q) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "", "only later events: a `duration` such as 1h or 7d, or a time such as 2026-01-31T09:00:00Z")
	f.StringVar(&q.Who, "holder", "", "only events of this `holder`, or of an item such as j12")
	f.StringVar(&q.Path, "path", "", "only events about this `path`")
	f.StringVar(&kind, "kind", "", "only events of this `kind`, such as acquired, landed or gap, a write that was refused or had no lock")
	f.BoolVar(&q.Internal, "internal", false, "also list locks of documents, .lockkeeper and .git that came and went in order")
	f.IntVar(&q.Limit, "limit", 100, "how many of the newest events to list; 0: all")
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

func (p *program) audit(ctx context.Context, a *project.Project, q view.AuditQuery) error {
	shown := 0
	for line, err := range view.New(a).Lines(ctx, q, term.Few(p.Out, pathsInLine)) {
		switch {
		case err != nil:
			return err
		case p.JSON:
			err = p.PrintLine(line.Event)
		default:
			_, err = fmt.Fprintln(p.Out, lineText(line))
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

const pathsInLine = 3

// lineText returns an event in one line, with its subject: an item with its name, a holder, or the actor.
func lineText(line view.Line) string {
	who := line.Name
	if line.Item != "" && line.Item != line.Name {
		who = fmt.Sprintf("%s (%s)", line.Item, line.Name)
	}
	text := fmt.Sprintf("%s  %-14s %s", term.Stamp(line.At), line.What, term.Clean(who))
	for _, detail := range line.Details {
		text += "  " + term.Clean(lockkeeper.LocalTimes(detail))
	}
	if line.GrantID != "" {
		text += "  " + line.GrantID
	}
	return text
}

// parseKind parses the kind of events, also in the spelling of audit; "" means all.
func parseKind(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var known []string
	for _, k := range view.EventKinds() {
		known = append(known, string(k))
	}
	kind := strings.NewReplacer(" ", "_", "-", "_").Replace(text)
	return []string{kind}, command.OneOf("kind", kind, known)
}
