package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/lock"
	"lockkeeper/rescue"
	"lockkeeper/store"
)

// A HeldChange is a change of a file that a person, a run or a command holds, by another program.
type HeldChange struct {
	Path, GrantID, Holder string
	Item                  string // id of the item; empty: no item holds it

	How    string // how it is known that another program made the change
	Rescue string // id of the previous version on the rescue shelf; empty: there was none
	Doubt  string // why the holder may have made the change; empty: it did not
}

// Keys in the data of the event of a HeldChange.
const (
	keyHow   = "held_change"
	keyDoubt = "doubt"
)

// heldChangeOf returns the change that an event records.
func heldChangeOf(ev lockkeeper.Event) (c HeldChange, ok bool) {
	if ev.Kind != lockkeeper.EventGap || ev.Data[keyHow] == "" {
		return c, false
	}
	return HeldChange{Path: ev.Data["path"], Item: ev.Data[lock.ItemKey], GrantID: ev.GrantID, Holder: ev.Holder, How: ev.Data[keyHow], Rescue: ev.Data["rescue"], Doubt: ev.Data[keyDoubt]}, true
}

func (c HeldChange) String() string {
	text := fmt.Sprintf("%s, which %s holds, was changed without a lock %s", refusal.Line(c.Path), refusal.Line(c.Holder), c.How)
	if c.Rescue != "" {
		text += "; the version before is kept; next: lockkeeper rescue show " + c.Rescue
	}
	return text
}

// begin finds the end of the log. Events before the end are not reported.
func (w *watch) begin(ctx context.Context) error {
	if w.tell.Changed == nil {
		return nil
	}
	last, err := w.registry.app.Locks.Events(ctx, store.EventQuery{Latest: true, Limit: 1})
	if len(last) > 0 {
		w.heard = last[0].Seq
	}
	return err
}

// eventsAtOnce is how many events of the log are read at once.
const eventsAtOnce = 1_000

// hear passes each change of a held file that any process has added to the log to w.tell.Changed.
func (w *watch) hear(ctx context.Context) error {
	for w.tell.Changed != nil {
		events, err := w.registry.app.Locks.Events(ctx, store.EventQuery{After: w.heard, Limit: eventsAtOnce})
		if err != nil {
			return err
		}
		for _, ev := range events {
			w.heard = ev.Seq
			if c, ok := heldChangeOf(ev); ok {
				w.tell.Changed(c)
			}
		}
		if len(events) < eventsAtOnce {
			return nil
		}
	}
	return nil
}

// A watched is a holder that is not a session. Who may write its files depends on its kind:
//
//   - a run lands all its changes through the gate, because its agents and tests work in workspaces;
//   - a command under a supervisor (lock exec, a job) writes with its own processes;
//   - anybody else may write with any program.
type watched struct {
	*store.Record
	onlyGate bool
	command  *process.Moment // state of the command at the last look; nil: not a command, or unknown
}

// includes reports whether a process belongs to the holder.
func (h watched) includes(p *lockkeeper.Process) bool {
	return p != nil && (sameProcess(p, h.Process) || h.command != nil && h.command.Has(p.PID))
}

// holderOf finds out who may write the files of a grant.
func (w *watch) holderOf(ctx context.Context, g *store.Record) (h watched, now *process.Moment, err error) {
	b := w.registry
	h = watched{Record: g, command: w.moments[g.ID]}
	if g.Process == nil || !b.app.Host.WorksIn(*g.Process, b.app.Root.Dir()) {
		h.command = nil // the command may hold the path in another copy of the codebase
		return h, nil, nil
	}
	if id := g.Metadata[lock.ItemKey]; id != "" {
		it, err := store.Read(ctx, b.app.Store, func(r store.Reader) (*lockkeeper.Item, error) { return r.Item(id) })
		if err != nil {
			return h, nil, err
		}
		if it != nil && len(it.Command) == 0 {
			h.onlyGate = true
			return h, nil, nil
		}
	}
	now, err = b.app.Host.Moment(*g.Process, h.command)
	return h, now, err
}

// others compares the files that people, runs and commands hold. It reports a change if another
// program certainly made it. If a command of a session may have made it, it keeps the version
// before the change.
func (w *watch) others(ctx context.Context, grants []*store.Record, sessions map[string]record) (err error) {
	seen, moments := map[string]Print{}, map[string]*process.Moment{}
	for _, g := range grants {
		if !slices.ContainsFunc(g.Locks, w.isWatched) {
			continue
		}
		h, now, wrong := w.holderOf(ctx, g) // the holder is read before the files of its grant
		err = errors.Join(err, wrong)
		if now != nil {
			moments[g.ID] = now
		}
		for _, l := range g.Locks {
			if !w.isWatched(l) {
				continue
			}
			is, wrong := w.registry.stat(l.Path)
			key := g.ID + " " + l.Path
			was, known := w.left[key]
			if wrong == nil && (!known || was.touched(is)) {
				is, wrong = w.changed(ctx, h, l.Path, was, known, sessions)
			} else {
				is.Sum = was.Sum
			}
			seen[key], err = is, errors.Join(err, wrong)
		}
	}
	w.left, w.moments = seen, moments
	return err
}

// isWatched reports whether a lock is on a file that only its holder may change.
func (w *watch) isWatched(l lockkeeper.Lock) bool {
	return l.Mode == lockkeeper.Write && l.Kind == lockkeeper.File && !isReserved(l.Path) && !w.registry.isDocument(l.Path)
}

// isDocument reports whether a path is a document of a flow, which a run writes without the gate.
func (b *Registry) isDocument(path string) bool {
	return slices.ContainsFunc(b.app.Config.DocumentDirs(), func(dir string) bool { return lockkeeper.IsAncestor(dir, path) })
}

// changed returns the current state of a file and keeps a copy of it. If another program may
// have changed the file, changed keeps the version before on the shelf and records the change. After
// an error it returns the state before, so that the next comparison finds the change again.
func (w *watch) changed(ctx context.Context, h watched, path string, was Print, known bool, sessions map[string]record) (is Print, err error) {
	b := w.registry
	is, content, err := b.read(path)
	if err == nil && is.Sum != "" {
		err = b.copy(is.Sum, content)
	}
	before := Copy(b.app, was.Sum)
	if err != nil || !known || !was.changed(is) || before == nil && was.Inode != 0 || is.Inode != 0 && is.Sum == "" {
		return is, err
	}
	if left, err := b.byGate(ctx, path, is); err != nil {
		return was, err
	} else if left {
		return is, nil
	}
	c, by, err := w.judge(h, path, is, sessions)
	if err != nil {
		return was, err
	}
	if c.How == "" || before == nil && c.Doubt != "" {
		return is, nil
	}
	if before != nil {
		s := &Session{registry: b}
		kept, err := s.shelve(ctx, rescue.Entry{Kind: rescue.Displaced, Path: path, GrantID: h.ID, Holder: h.Holder, Mode: 0o644,
			Reason: "it was changed while " + h.Holder + " held it, " + c.How}, before)
		if err != nil {
			return was, err
		}
		c.Rescue = kept.ID
	}
	data := map[string]string{"path": path, "rescue": c.Rescue, keyHow: c.How, keyDoubt: c.Doubt}
	if id := h.Metadata[lock.ItemKey]; id != "" {
		data[lock.ItemKey] = id
	}
	return is, b.app.Locks.Update(ctx, func(a *lock.Tx) error {
		_, err := a.Append(lockkeeper.Event{Kind: lockkeeper.EventGap, Actor: by, Holder: h.Holder, GrantID: h.ID,
			Locks: []lockkeeper.Lock{write(path)}, Reason: "it was changed while " + h.Holder + " held it, " + c.How, Data: data})
		return err
	})
}

// judge decides whether another program than the holder changed a file. It returns the zero HeldChange
// if nothing says so.
func (w *watch) judge(h watched, path string, is Print, sessions map[string]record) (c HeldChange, by lockkeeper.Actor, err error) {
	writer, maybe := "", ""
	for _, r := range sessions {
		if h.includes(r.Process) {
			continue
		}
		if left, ok := r.Files[path]; ok && left.Own && left.Found == nil && !left.touched(is) {
			writer = r.Callsign
		}
		if w.registry.alive(r.Info) && r.mayHaveWritten(is) {
			maybe = r.Callsign
		}
	}
	by = lockkeeper.System()
	if name := writer + maybe; name != "" {
		by = lockkeeper.Actor{Name: maybe, Kind: lockkeeper.ActorAgent}
		if writer != "" {
			by.Name = writer
		}
	}
	idle := h.command != nil && h.command.Idle()
	if idle && writer == "" {
		if idle, err = h.command.Alone(); err != nil {
			return c, by, err
		}
	}
	also := ""
	if maybe != "" {
		also = ", maybe by a command of session " + maybe
	}
	switch {
	case writer != "":
		c.How = "by session " + writer
	case h.onlyGate:
		c.How = "and not by the gate, through which a run writes" + also
	case idle:
		c.How = "while no process of the holder's command ran" + also
	case maybe != "":
		c.How, c.Doubt = "maybe by a command of session "+maybe, "its holder does not report what it writes"
	}
	return c, by, nil
}

// landingsRead is how many landings of a file are read. One is not enough: others may land between
// the reading of the file and that of the landings.
const landingsRead = 16

// byGate reports whether the gate left a file in a state. While a landing is decided and not
// complete, the file has its old or its new state, because the gate exchanges both in one step.
func (b *Registry) byGate(ctx context.Context, path string, is Print) (left bool, err error) {
	same := func(v lockkeeper.Version) bool {
		if is.Inode == 0 || !v.Exists() {
			return is.Inode == 0 && !v.Exists()
		}
		return v.Sum == File{Print: is}.version().Sum
	}
	last, err := store.Read(ctx, b.app.Store, func(r store.Reader) ([]*lockkeeper.Landing, error) {
		return r.Landings(store.LandingQuery{Path: path, Latest: true, Limit: landingsRead})
	})
	for _, l := range last {
		for _, ch := range l.Changes {
			left = left || ch.Path == path && (l.State != lockkeeper.Undone && same(ch.New) || l.State != lockkeeper.Committed && same(ch.Old))
		}
	}
	return left, err
}

// mayHaveWritten reports whether a command of a session ran when a file changed, or continues.
func (r *record) mayHaveWritten(is Print) bool {
	return is.Inode != 0 && r.ranAt(is.Ctime) || slices.ContainsFunc(r.Background, func(c Call) bool { return c.At <= is.Ctime && is.Ctime-c.At < int64(longestCall) })
}
