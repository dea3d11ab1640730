package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/lock"
	"lockkeeper/rescue"
)

// How many of each status shows at once on a terminal.
const (
	pathsShown   = 8
	holdersShown = 3
)

func (p *program) statusCommand() *cobra.Command {
	var watch, short bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Who is at work, who holds what, and who waits for whom",
		Long: `Show which interactive agents are at work, in which terminal and on what, who holds
what since when and until when, and who waits for whom. Grants
whose time is past, and which wait for a person to decide, are a group of their
own, marked (STALE). So are those whose process is gone: they are free for whoever
asks. A grant marked (landing) has changes on their way into the
codebase; one marked (revoking) was taken away and is handed on once they are
done. Then the gaps, which are writes that were refused, or made without a lock, and
the edits that gave way to others: both are kept, see lockkeeper rescue. And what is queued
and runs, in a line: see lockkeeper job list; and what a flow asks you.

--watch shows it anew whenever something changes. --short is one line for the prompt
of a shell: how many sessions are there, how much is held and waited for; nothing
where there is nobody and nothing.`,
		Example: `  lockkeeper status
  lockkeeper status --watch
  PS1='$(lockkeeper status --short)\$ '
  lockkeeper status --json | jq '.held[].write_paths'`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case short && watch:
				return usage(cmd, "--short is one line for a prompt, and --watch stays: give one of them")
			case short:
				return p.short(cmd.Context())
			}
			return p.with(cmd.Context(), func(a *app.App) error {
				if watch {
					return p.watchStatus(cmd.Context(), a)
				}
				s, err := p.gatherAll(cmd.Context(), a)
				if err != nil {
					return err
				}
				live := s.ids()
				a.Tokens.Sweep(func(id string) bool { return live[id] })
				if p.json {
					return p.printJSON(s)
				}
				return p.showStatus(s)
			})
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show it anew whenever something changes")
	cmd.Flags().BoolVar(&short, "short", false, "one line for the prompt of a shell")
	return cmd
}

// gatherAll is everything that status shows.
func (p *program) gatherAll(ctx context.Context, a *app.App) (*status, error) {
	s, err := gather(ctx, a)
	if err != nil {
		return nil, err
	}
	unfinished, err := a.Unfinished(ctx)
	if err != nil {
		fmt.Fprintf(p.Err, "note: unfinished landings cannot be shown: %s\n", clean(err.Error()))
	}
	s.Unfinished = append(s.Unfinished, unfinished...)
	if err := s.gatherRescued(ctx, a); err != nil {
		fmt.Fprintf(p.Err, "note: what was refused and kept cannot be shown: %s\n", clean(err.Error()))
	}
	if err := s.gatherNeeds(ctx, a); err != nil {
		fmt.Fprintf(p.Err, "note: what a flow asks people cannot be shown: %s\n", clean(err.Error()))
	}
	if err := s.gatherPeople(ctx, a); err != nil {
		return nil, err
	}
	return s, s.gatherQueue(ctx, a)
}

// standing is one grant or waiting request with what is known of its process.
type standing struct {
	lock.Entry
	Life string `json:"process_state,omitempty"`
	Gone bool   `json:"gone,omitempty"` // the next request for its paths frees it
}

// status is everything in a space, in ticket order.
type status struct {
	Root    string     `json:"root"`
	Space   string     `json:"space"`
	Held    []standing `json:"held"`
	Stale   []standing `json:"stale"`
	Gone    []standing `json:"gone"` // the next request for their paths frees them
	Waiting []standing `json:"waiting"`

	Gaps      []entry `json:"gaps"`      // writes that were refused, or made without a lock
	Displaced []entry `json:"displaced"` // edits that gave way to others
	Unlanded  []entry `json:"unlanded"`  // work that failed to land
	Damaged   []entry `json:"damaged"`   // what is kept, and not as it was put

	Uncommitted []entry               `json:"uncommitted"` // files that were lost while a command of a session ran
	Unfinished  []*lockkeeper.Landing `json:"unfinished"`  // landings that are neither done nor rolled back

	people
	queueStatus
}

// ids is the set of all grants and requests.
func (s *status) ids() map[string]bool {
	set := map[string]bool{}
	for _, e := range slices.Concat(s.Held, s.Stale, s.Gone, s.Waiting) {
		set[e.ID] = true
	}
	return set
}

func gather(ctx context.Context, a *app.App) (*status, error) {
	entries, err := a.Locks.Entries(ctx)
	if err != nil {
		return nil, err
	}
	s := &status{Root: a.Root.Dir(), Space: a.Space, Held: []standing{}, Stale: []standing{}, Gone: []standing{}, Waiting: []standing{},
		Gaps: []entry{}, Displaced: []entry{}, Unlanded: []entry{}, Damaged: []entry{}, Uncommitted: []entry{}, Unfinished: []*lockkeeper.Landing{}}
	for _, e := range entries {
		list := &s.Held
		one := stand(a, e)
		switch {
		case e.State == waiting:
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

// gatherRescued adds what is kept on the rescue shelf.
func (s *status) gatherRescued(ctx context.Context, a *app.App) error {
	list, err := a.Rescued(ctx)
	for _, e := range list {
		switch e.Kind {
		case rescue.Gap:
			s.Gaps = append(s.Gaps, entryOf(e))
		case rescue.Unlanded:
			s.Unlanded = append(s.Unlanded, entryOf(e))
		case rescue.Displaced, rescue.Whole:
			s.Displaced = append(s.Displaced, entryOf(e))
		case rescue.Uncommitted:
			s.Uncommitted = append(s.Uncommitted, entryOf(e))
		default:
			s.Damaged = append(s.Damaged, entryOf(e))
		}
	}
	return err
}

// waiting is the state of an entry that stands in line.
const waiting = "waiting"

func stand(a *app.App, e lock.Entry) standing {
	s := standing{Entry: e, Gone: e.Free}
	if e.Process != nil {
		s.Life = a.Host.Life(*e.Process).String()
	}
	return s
}

// note is what a person should notice about an entry.
func (s *standing) note() string {
	var notes []string
	if s.Stale {
		notes = append(notes, "STALE")
	}
	if s.State != "held" && s.State != waiting {
		notes = append(notes, s.State)
	}
	if (s.Gone || !s.Stale) && s.Life == lockkeeper.LifeDead.String() {
		notes = append(notes, "process gone")
	}
	if notes == nil {
		return ""
	}
	return "(" + strings.Join(notes, ", ") + ")"
}

// locksOf lists the paths of an entry with their modes, strongest first.
func locksOf(e lock.Entry) (list []lockkeeper.Lock) {
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

func (p *program) showStatus(s *status) error {
	asked := p.showPeople(s)
	if len(s.Held)+len(s.Stale)+len(s.Gone)+len(s.Waiting) == 0 {
		fmt.Fprintf(p.Out, "nothing is locked in %s, and nobody waits\n", clean(s.Root))
		next := p.showRescued(s)
		queue := p.showQueue(&s.queueStatus)
		p.advise(cmp.Or(asked, next, queue, "lockkeeper init claude, codex or gemini, where agents work in windows; lockkeeper run --plan FILE for a plan of tasks; lockkeeper lock exec --write PATH -- COMMAND; or lockkeeper job submit --write PATH -- COMMAND"))
		return nil
	}
	paint := p.painter(p.Out)
	now := p.Now()
	next := ""
	if len(s.Held) > 0 {
		fmt.Fprintf(p.Out, "%s\n", paint(bold, fmt.Sprintf("held: %s", counted(len(s.Held), "grant"))))
		holdings(s.Held, now, few(p.Out, pathsShown)).print(p.Out, paint)
	}
	if len(s.Stale) > 0 {
		fmt.Fprintf(p.Out, "%s\n", paint(yellow, fmt.Sprintf("stale: %s (STALE), past the lease and still held", counted(len(s.Stale), "grant"))))
		holdings(s.Stale, now, few(p.Out, pathsShown)).print(p.Out, paint)
		next = "lockkeeper why GRANT, then lockkeeper lock force-release GRANT or lockkeeper lock clear"
	}
	if len(s.Gone) > 0 {
		fmt.Fprintf(p.Out, "%s\n", paint(bold, fmt.Sprintf("gone: %s of holders that are gone, freed by the next request", counted(len(s.Gone), "grant"))))
		holdings(s.Gone, now, few(p.Out, pathsShown)).print(p.Out, paint)
	}
	if len(s.Waiting) > 0 {
		fmt.Fprintf(p.Out, "%s\n", paint(bold, fmt.Sprintf("waiting: %s, first come first", counted(len(s.Waiting), "request"))))
		waits(s.Waiting, now, few(p.Out, pathsShown), few(p.Out, holdersShown)).print(p.Out, paint)
	}
	if len(s.Unfinished) > 0 {
		fmt.Fprintln(p.Out, paint(yellow, "unfinished: "+counted(len(s.Unfinished), "landing")+", neither done nor rolled back"))
		for _, l := range s.Unfinished {
			fmt.Fprintf(p.Out, "  landing %d of %s, %s\n", l.Seq, clean(l.Holder), counted(len(l.Changes), "file"))
		}
		next = cmp.Or(next, "lockkeeper gate recover")
	}
	rescued := p.showRescued(s)
	queue := p.showQueue(&s.queueStatus)
	p.advise(cmp.Or(asked, next, rescued, queue))
	return nil
}

// gapsShown is how many gaps status shows, the newest.
const gapsShown = 5

// showRescued tells what waits on the rescue shelf for somebody to look at it, and
// returns the next step.
func (p *program) showRescued(s *status) (next string) {
	paint := p.painter(p.Out)
	for _, group := range []struct {
		title string
		list  []entry
	}{
		{"gaps: " + counted(len(s.Gaps), "write") + " refused, or made without a lock, kept", s.Gaps},
		{"displaced: " + counted(len(s.Displaced), "edit") + " that gave way to " + plural(len(s.Displaced), "another", "others") + ", kept", s.Displaced},
		{"uncommitted: " + counted(len(s.Uncommitted), "file") + " removed or overwritten by commands of sessions, kept", s.Uncommitted},
		{"unlanded: " + counted(len(s.Unlanded), "file") + " that failed to land, kept", s.Unlanded},
		{"damaged: " + counted(len(s.Damaged), "kept piece") + ", not as " + plural(len(s.Damaged), "it was", "they were") + " put", s.Damaged},
	} {
		n := len(group.list)
		if n == 0 {
			continue
		}
		if n > gapsShown {
			group.title += fmt.Sprintf("; newest %d; all: lockkeeper rescue list", gapsShown)
		}
		fmt.Fprintln(p.Out, paint(yellow, group.title))
		rescued(group.list[max(0, n-gapsShown):], p.Now()).print(p.Out, paint)
		next = cmp.Or(next, "lockkeeper rescue show "+group.list[n-1].ID)
	}
	return next
}

func counted(n int, what string) string { return fmt.Sprintf("%d %s", n, plural(n, what, what+"s")) }

// plural is the word for one, or for any other number of them.
func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// holdings is a table with a row to a path, of each grant so many at most; what
// belongs to the grant stands in its first row.
func holdings(list []standing, now time.Time, paths int) *table {
	t := &table{heads: []string{"HOLDER", "MODE", "PATH", "FOR", "EXPIRES", "GRANT", ""}, wide: 2}
	for _, s := range list {
		rows := s.rows(paths)
		t.add(clean(s.Holder), rows[0][0], rows[0][1], span(now.Sub(s.AcquiredAt)), until(s.ExpiresAt, now), s.ID, s.note())
		for _, row := range rows[1:] {
			t.add("", row[0], row[1], "", "", "", "")
		}
	}
	return t
}

func waits(list []standing, now time.Time, paths, holders int) *table {
	t := &table{heads: []string{"HOLDER", "MODE", "PATH", "FOR", "WAITS FOR", "REQUEST", ""}, wide: 2}
	for _, s := range list {
		rows := s.rows(paths)
		t.add(clean(s.Holder), rows[0][0], rows[0][1], span(now.Sub(s.AcquiredAt)), waitsFor(s.Conflicts, holders), s.ID, s.note())
		for _, row := range rows[1:] {
			t.add("", row[0], row[1], "", "", "", "")
		}
	}
	return t
}

// rows is the rows of an entry, and its reason where it has one.
func (s *standing) rows(limit int) [][2]string {
	rows := rowsOf(s.Entry, limit)
	if reason := s.Metadata["reason"]; reason != "" {
		rows = append(rows, [2]string{"reason", clean(reason)})
	}
	return rows
}

// rowsOf is mode and path of each lock of an entry, and a last row for those
// beyond the limit; never empty.
func rowsOf(e lock.Entry, limit int) (rows [][2]string) {
	locks := locksOf(e)
	if len(locks) == 0 {
		return [][2]string{{"-", "(no paths)"}}
	}
	for i, l := range locks {
		if i == limit && i+1 < len(locks) {
			return append(rows, [2]string{"", fmt.Sprintf("… and %d more", len(locks)-i)})
		}
		rows = append(rows, [2]string{l.Mode.String(), clean(l.Path)})
	}
	return rows
}

// waitsFor names the holders in the way, each once, so many at most.
func waitsFor(conflicts []lockkeeper.ConflictInfo, limit int) string {
	var names []string
	seen := map[string]bool{}
	for _, c := range conflicts {
		if !seen[c.Holder] {
			seen[c.Holder] = true
			names = append(names, clean(c.Holder))
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
