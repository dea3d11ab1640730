package view

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// grants remembers grants as they were shown: of ten thousand most are as they were, and
// a store lists the same record then.
type grants struct {
	mu    sync.Mutex
	known map[*store.Record]*shownGrant
}

// shownGrant is a grant as it is shown at any time, but for its age.
type shownGrant struct {
	snapshot lockkeeper.GrantSnapshot

	once           sync.Once // guards what follows
	before, behind []byte    // its JSON, around its age
	wrong          error
}

// show is grants as they are shown at a moment, and what is known of their spelling.
func (g *grants) show(records []*store.Record, now time.Time) ([]lockkeeper.GrantSnapshot, []*shownGrant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list, shown := make([]lockkeeper.GrantSnapshot, len(records)), make([]*shownGrant, len(records))
	seen := make(map[*store.Record]*shownGrant, len(records))
	for i, rec := range records {
		is := g.known[rec]
		if is == nil {
			is = &shownGrant{snapshot: rec.Snapshot(now)}
		}
		seen[rec], shown[i], list[i] = is, is, is.snapshot
		list[i].Age = max(0, now.Sub(rec.AcquiredAt).Seconds())
	}
	g.known = seen
	return list, shown
}

// ageMember is the age of a grant in its JSON. Whatever of a grant is a text of somebody's
// own choice has its quotes behind backslashes, or comes behind it.
const ageMember = `,"age_seconds":0`

// spell spells the grant, once.
func (g *shownGrant) spell() error {
	g.once.Do(func() {
		ageless := g.snapshot
		ageless.Age = 0
		var text []byte
		if text, g.wrong = json.Marshal(&ageless); g.wrong == nil {
			g.before, g.behind = cut(text, ageMember)
			g.before = g.before[:len(g.before)-len("0")]
		}
	})
	return g.wrong
}

// cut cuts a text behind the first of a member.
func cut(text []byte, member string) (before, behind []byte) {
	at := bytes.Index(text, []byte(member)) + len(member)
	return text[:at:at], text[at:]
}
