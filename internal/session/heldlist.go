package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// heldList lists the paths that were held, for writing or reading, at any time since it was made.
// It is kept in a file and updated from events, so that a call need not read thousands of grants.
// Released paths stay in it and cost one stat call each.
type heldList struct {
	seq   uint64 // number of the last event that the list includes
	made  time.Time
	paths []string
}

const (
	listKept   = 30 * time.Minute // after this time the list is rebuilt without released paths
	listEvents = 2_000            // reading more events is slower than rebuilding the list
)

// heldPaths updates the list and returns its paths.
func (b *Registry) heldPaths(ctx context.Context) ([]string, error) {
	list, ok := b.readList()
	stale := !ok || b.now().Sub(list.made) > listKept
	grown := false
	err := b.app.Store.View(ctx, func(r store.Reader) (err error) {
		if !stale {
			stale, grown, err = list.follow(r)
		}
		if err != nil || !stale {
			return err
		}
		return b.makeList(r, &list)
	})
	if err != nil || !stale && !grown {
		return list.paths, err
	}
	return list.paths, b.writeList(list)
}

// follow adds the paths that were acquired since the last event in the list. stale is true if
// there are too many events, or some are no longer stored.
func (l *heldList) follow(r store.Reader) (stale, grown bool, err error) {
	events, err := r.Events(store.EventQuery{After: l.seq, Limit: listEvents})
	if err != nil || len(events) == 0 {
		return false, false, err
	}
	if len(events) == listEvents || events[0].Seq != l.seq+1 {
		return true, false, nil
	}
	var taken []lockkeeper.Lock
	for _, ev := range events {
		l.seq = ev.Seq
		if ev.Kind == lockkeeper.EventAcquired || ev.Kind == lockkeeper.EventExtended || ev.Kind == lockkeeper.EventUpgraded {
			taken = append(taken, ev.Locks...)
		}
	}
	l.add(taken)
	return false, true, nil
}

// add adds the paths of locks, without duplicates.
func (l *heldList) add(locks []lockkeeper.Lock) {
	known := make(map[string]bool, len(l.paths))
	for _, p := range l.paths {
		known[p] = true
	}
	for _, k := range locks {
		if isCompared(k) && !known[k.Path] {
			known[k.Path] = true
			l.paths = append(l.paths, k.Path)
		}
	}
}

// makeList builds the list from the active grants.
func (b *Registry) makeList(r store.Reader, l *heldList) error {
	*l = heldList{made: b.now()}
	last, err := r.Events(store.EventQuery{Limit: 1, Latest: true})
	if err != nil {
		return err
	}
	for _, ev := range last {
		l.seq = ev.Seq
	}
	grants, err := b.app.Locks.GrantsIn(r)
	var held []lockkeeper.Lock
	for _, g := range grants {
		held = append(held, g.Locks...)
	}
	l.add(held)
	return err
}

// isCompared reports whether the target of a lock is compared after a command. Read locks of
// resources, or of nodes above them, do not concern files.
func isCompared(l lockkeeper.Lock) bool {
	return !isReserved(l.Path) && (l.Mode == lockkeeper.Write || l.Kind == lockkeeper.File || l.Kind == lockkeeper.Dir)
}

func (b *Registry) listFile() string { return filepath.Join(b.dir, "held") }

// readList reads the file: the event number, the time and the paths, each terminated by a zero
// byte. ok is false if the file is missing or damaged.
func (b *Registry) readList() (l heldList, ok bool) {
	text, err := os.ReadFile(b.listFile())
	if err != nil || len(text) == 0 || text[len(text)-1] != 0 {
		return l, false
	}
	fields := strings.Split(string(text[:len(text)-1]), "\x00")
	if len(fields) < 2 {
		return l, false
	}
	made, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return l, false
	}
	l.seq, err = strconv.ParseUint(fields[0], 10, 64)
	l.made, l.paths = time.Unix(0, made), fields[2:]
	return l, err == nil
}

func (b *Registry) writeList(l heldList) error {
	var text strings.Builder
	text.WriteString(strconv.FormatUint(l.seq, 10) + "\x00" + strconv.FormatInt(l.made.UnixNano(), 10) + "\x00")
	for _, p := range l.paths {
		text.WriteString(p)
		text.WriteByte(0)
	}
	draft, err := os.CreateTemp(b.dir, "held-*")
	if err != nil {
		return err
	}
	_, err = draft.WriteString(text.String())
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), b.listFile())
	}
	if err != nil {
		if gone := os.Remove(draft.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
