package locks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/lock"
)

// PathsShown is how many paths of a grant are shown on a terminal.
const PathsShown = 8

const waiting = "waiting"

// note returns what a person should notice about an entry.
func note(s view.Holding) string {
	var notes []string
	if s.Stale {
		notes = append(notes, "STALE")
	}
	if s.State != "held" && s.State != waiting {
		notes = append(notes, s.State)
	}
	if (s.Gone || !s.Stale) && s.Liveness == lockkeeper.ProcessDead.String() {
		notes = append(notes, "process gone")
	}
	if notes == nil {
		return ""
	}
	return "(" + strings.Join(notes, ", ") + ")"
}

// Holdings returns a table with one row per path, and at most paths rows per grant. The first
// row has the facts of the grant.
func Holdings(list []view.Holding, now time.Time, paths int) *term.Table {
	return requests(list, now, paths, "EXPIRES", "GRANT", func(s view.Holding) string { return term.Until(s.ExpiresAt, now) })
}

func Waits(list []view.Holding, now time.Time, paths, holders int) *term.Table {
	return requests(list, now, paths, "WAITS FOR", "REQUEST", func(s view.Holding) string { return WaitsFor(s.Conflicts, holders) })
}

// requests returns a table with a row for each path and the reason of an entry.
func requests(list []view.Holding, now time.Time, paths int, state, id string, stateOf func(view.Holding) string) *term.Table {
	t := &term.Table{Heads: []string{"HOLDER", "MODE", "PATH", "FOR", state, id, ""}, Wide: 2}
	for _, s := range list {
		rows := rowsOf(s.RequestInfo, paths)
		if reason := s.Metadata["reason"]; reason != "" {
			rows = append(rows, [2]string{"reason", term.Clean(reason)})
		}
		t.Add(term.Clean(s.Holder), rows[0][0], rows[0][1], term.Span(now.Sub(s.AcquiredAt)), stateOf(s), lockkeeper.ShortID(s.ID), note(s))
		for _, row := range rows[1:] {
			t.Add("", row[0], row[1], "", "", "", "")
		}
	}
	return t
}

// rowsOf returns mode and path of each lock of an entry, and a last row for those beyond the
// limit. It is never empty.
func rowsOf(e lock.RequestInfo, limit int) (rows [][2]string) {
	locks := view.PathLocks(e)
	if len(locks) == 0 {
		return [][2]string{{"-", "(no paths)"}}
	}
	for i, l := range locks {
		if i == limit && i+1 < len(locks) {
			return append(rows, [2]string{"", fmt.Sprintf("… and %d more", len(locks)-i)})
		}
		rows = append(rows, [2]string{l.Mode.String(), term.Clean(l.Path)})
	}
	return rows
}

// WaitsFor returns the names of the blocking holders, each once, up to limit.
func WaitsFor(conflicts []lockkeeper.ConflictInfo, limit int) string {
	var names []string
	for _, c := range conflicts {
		if !slices.Contains(names, c.Holder) {
			names = append(names, c.Holder)
		}
	}
	if len(names) == 0 {
		return "granted next"
	}
	return term.JoinFew(names, limit, term.Clean)
}

// Show prints everything about a grant or a waiting request.
func Show(p *command.Program, f term.File, s view.Holding) {
	now := p.Now()
	verb := "holds"
	if s.State == waiting {
		verb = "waits for"
	}
	fmt.Fprintf(f, "%s %s %s", p.Painter(f)(term.Bold, term.Clean(s.Holder)), verb, listed(s.RequestInfo))
	if text := note(s); text != "" {
		fmt.Fprint(f, " ", p.Painter(f)(term.Yellow, text))
	}
	fmt.Fprintf(f, "\n  for %s, since %s; expires %s", term.Span(now.Sub(s.AcquiredAt)), term.Stamp(s.AcquiredAt), term.Until(s.ExpiresAt, now))
	fmt.Fprintf(f, "; last heartbeat %s ago\n", term.Span(now.Sub(s.HeartbeatAt)))
	fmt.Fprintf(f, "  grant %s, policy %s", s.ID, term.Clean(s.Policy))
	if s.State != waiting {
		fmt.Fprintf(f, ", fence %d", s.Fence)
	}
	if s.Process != nil {
		fmt.Fprintf(f, ", process %d on %s is %s", s.Process.PID, term.Clean(s.Process.Host), s.Liveness)
	} else {
		fmt.Fprint(f, ", no process recorded")
	}
	fmt.Fprintln(f)
	if s.Gone {
		fmt.Fprintln(f, "  its process is gone: the next request for its paths releases it")
	}
	if reason := s.Metadata["reason"]; reason != "" {
		fmt.Fprintf(f, "  reason: %s\n", term.Clean(reason))
	}
	for _, c := range s.Conflicts {
		how := "holds"
		if c.Kind == lockkeeper.Waiting {
			how = "waits earlier for"
		}
		fmt.Fprintf(f, "  blocked: %s %s %s for %s, grant %s\n", term.Clean(c.Holder), how,
			lockkeeper.Lock{Target: lockkeeper.Target{Path: term.Clean(c.BlockingPath)}, Mode: c.BlockingMode}, term.Span(now.Sub(c.AcquiredAt)), lockkeeper.ShortID(c.GrantID))
	}
}

// listed returns all locks of an entry: in one line if they are few, otherwise one per line.
func listed(e lock.RequestInfo) string {
	rows := rowsOf(e, term.All)
	parts := make([]string, len(rows))
	for i, row := range rows {
		parts[i] = row[0] + " " + row[1]
	}
	if len(parts) > PathsShown {
		return term.Counted(len(parts), "lock") + ":\n    " + strings.Join(parts, "\n    ")
	}
	return strings.Join(parts, ", ")
}
