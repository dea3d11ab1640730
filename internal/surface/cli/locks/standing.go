package locks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/lock"
)

// PathsShown is how many paths of a grant are shown on a terminal.
const PathsShown = 8

// Standing is one grant or waiting request with what is known of its process.
type Standing struct {
	lock.RequestInfo
	Life string `json:"process_state,omitempty"`
	Gone bool   `json:"gone,omitempty"` // the next request for its paths frees it
}

// Standings is every grant and waiting request of a space, in ticket order.
type Standings struct {
	Held    []Standing `json:"held"`
	Stale   []Standing `json:"stale"`
	Gone    []Standing `json:"gone"` // the next request for their paths frees them
	Waiting []Standing `json:"waiting"`
}

// IDs is the set of all grants and requests.
func (s *Standings) IDs() map[string]bool {
	set := map[string]bool{}
	for _, e := range slices.Concat(s.Held, s.Stale, s.Gone, s.Waiting) {
		set[e.ID] = true
	}
	return set
}

func StandingsOf(ctx context.Context, a *project.Project) (*Standings, error) {
	entries, err := a.Locks.Requests(ctx)
	if err != nil {
		return nil, err
	}
	s := &Standings{Held: []Standing{}, Stale: []Standing{}, Gone: []Standing{}, Waiting: []Standing{}}
	for _, e := range entries {
		list := &s.Held
		one := Stand(a, e)
		switch {
		case e.State == Waiting:
			list = &s.Waiting
		case one.Gone:
			list = &s.Gone
		case e.Stale:
			list = &s.Stale
		}
		*list = append(*list, one)
	}
	return s, nil
}

// Waiting is the state of an entry that stands in line.
const Waiting = "waiting"

func Stand(a *project.Project, e lock.RequestInfo) Standing {
	s := Standing{RequestInfo: e, Gone: e.Free}
	if e.Process != nil {
		s.Life = a.Host.Liveness(*e.Process).String()
	}
	return s
}

// note is what a person should notice about an entry.
func (s *Standing) note() string {
	var notes []string
	if s.Stale {
		notes = append(notes, "STALE")
	}
	if s.State != "held" && s.State != Waiting {
		notes = append(notes, s.State)
	}
	if (s.Gone || !s.Stale) && s.Life == lockkeeper.ProcessDead.String() {
		notes = append(notes, "process gone")
	}
	if notes == nil {
		return ""
	}
	return "(" + strings.Join(notes, ", ") + ")"
}

// locksOf lists the paths of an entry with their modes, strongest first.
func locksOf(e lock.RequestInfo) (list []lockkeeper.Lock) {
	add := func(mode lockkeeper.Mode, paths []string) {
		for _, path := range paths {
			list = append(list, lockkeeper.Lock{Target: lockkeeper.Target{Path: path}, Mode: mode})
		}
	}
	add(lockkeeper.Write, e.WritePaths)
	add(lockkeeper.Upgradeable, e.UpgradeablePaths)
	add(lockkeeper.Read, e.ReadPaths)
	return list
}

// Holdings is a table with a row to a path, of each grant so many at most; what
// belongs to the grant stands in its first row.
func Holdings(list []Standing, now time.Time, paths int) *term.Table {
	t := &term.Table{Heads: []string{"HOLDER", "MODE", "PATH", "FOR", "EXPIRES", "GRANT", ""}, Wide: 2}
	for _, s := range list {
		rows := s.rows(paths)
		t.Add(term.Clean(s.Holder), rows[0][0], rows[0][1], term.Span(now.Sub(s.AcquiredAt)), term.Until(s.ExpiresAt, now), s.ID, s.note())
		for _, row := range rows[1:] {
			t.Add("", row[0], row[1], "", "", "", "")
		}
	}
	return t
}

func Waits(list []Standing, now time.Time, paths, holders int) *term.Table {
	t := &term.Table{Heads: []string{"HOLDER", "MODE", "PATH", "FOR", "WAITS FOR", "REQUEST", ""}, Wide: 2}
	for _, s := range list {
		rows := s.rows(paths)
		t.Add(term.Clean(s.Holder), rows[0][0], rows[0][1], term.Span(now.Sub(s.AcquiredAt)), WaitsFor(s.Conflicts, holders), s.ID, s.note())
		for _, row := range rows[1:] {
			t.Add("", row[0], row[1], "", "", "", "")
		}
	}
	return t
}

// rows is the rows of an entry, and its reason where it has one.
func (s *Standing) rows(limit int) [][2]string {
	rows := rowsOf(s.RequestInfo, limit)
	if reason := s.Metadata["reason"]; reason != "" {
		rows = append(rows, [2]string{"reason", term.Clean(reason)})
	}
	return rows
}

// rowsOf is mode and path of each lock of an entry, and a last row for those
// beyond the limit; never empty.
func rowsOf(e lock.RequestInfo, limit int) (rows [][2]string) {
	locks := locksOf(e)
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

// WaitsFor names the holders in the way, each once, so many at most.
func WaitsFor(conflicts []lockkeeper.ConflictInfo, limit int) string {
	var names []string
	seen := map[string]bool{}
	for _, c := range conflicts {
		if !seen[c.Holder] {
			seen[c.Holder] = true
			names = append(names, term.Clean(c.Holder))
		}
	}
	switch {
	case len(names) == 0:
		return "being served"
	case len(names) > limit:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
	}
	return strings.Join(names, ", ")
}

// Show tells all that is known of a grant or a waiting request.
func Show(p *command.Program, f term.File, s Standing) {
	now := p.Now()
	verb := "holds"
	if s.State == Waiting {
		verb = "waits for"
	}
	fmt.Fprintf(f, "%s %s %s", p.Painter(f)(term.Bold, term.Clean(s.Holder)), verb, listed(s.RequestInfo))
	if note := s.note(); note != "" {
		fmt.Fprint(f, " ", p.Painter(f)(term.Yellow, note))
	}
	fmt.Fprintf(f, "\n  for %s, since %s; expires %s", term.Span(now.Sub(s.AcquiredAt)), term.Stamp(s.AcquiredAt), term.Until(s.ExpiresAt, now))
	fmt.Fprintf(f, "; last heartbeat %s ago\n", term.Span(now.Sub(s.HeartbeatAt)))
	fmt.Fprintf(f, "  grant %s, policy %s", s.ID, term.Clean(s.Policy))
	if s.State != Waiting {
		fmt.Fprintf(f, ", fence %d", s.Fence)
	}
	if s.Process != nil {
		fmt.Fprintf(f, ", process %d on %s is %s", s.Process.PID, term.Clean(s.Process.Host), s.Life)
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
			lockkeeper.Lock{Target: lockkeeper.Target{Path: term.Clean(c.BlockingPath)}, Mode: c.BlockingMode}, term.Span(now.Sub(c.AcquiredAt)), c.GrantID)
	}
}

// listed is all locks of an entry: in the line while they are few, below it when
// they are many.
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
