package view

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"lockkeeper"
)

// stateSize is about what the JSON of a state takes for each grant.
const stateSize = 512

// JSON is the state as encoding/json spells it, and several times faster: there may be ten
// thousand grants. All who share a state share its spelling, too.
func (s *State) JSON() ([]byte, error) {
	s.once.Do(func() {
		b := spelling{text: make([]byte, 0, stateSize*(len(s.Locks.ActiveGrants)+8))}
		b.raw(`{"phase":`)
		b.other(s.Phase)
		b.raw(`,"controllers":`)
		b.other(s.Controllers)
		b.raw(`,"workflows":`)
		b.other(s.Workflows)
		b.raw(`,"locks":{"active_grants":`)
		b.grants(s.Locks.ActiveGrants)
		b.raw(`,"queue_depth":`)
		b.other(s.Locks.QueueDepth)
		b.raw(`,"active_items":`)
		b.other(s.Locks.ActiveItems)
		b.raw(`,"blocked_items":`)
		b.other(s.Locks.BlockedItems)
		b.raw(`,"blocked_count":`)
		b.other(s.Locks.BlockedCount)
		b.raw(`,"gaps":`)
		b.other(s.Locks.Gaps)
		b.raw(`},"cost":`)
		b.other(s.Cost)
		b.raw(`,"flow":`)
		b.other(s.Flow)
		b.raw(`,"problems":`)
		b.other(s.Problems)
		b.raw(`,"at":`)
		b.time(s.At)
		b.raw(`,"seq":`)
		b.other(s.Seq)
		b.raw("}")
		s.text, s.wrong = b.text, b.err
	})
	return s.text, s.wrong
}

// spelling is JSON that is being written.
type spelling struct {
	text []byte
	err  error
}

func (b *spelling) raw(text string) { b.text = append(b.text, text...) }

func (b *spelling) grants(list []lockkeeper.GrantSnapshot) {
	if list == nil {
		b.raw("null")
		return
	}
	b.raw("[")
	for i := range list {
		if i > 0 {
			b.raw(",")
		}
		b.grant(&list[i])
	}
	b.raw("]")
}

func (b *spelling) grant(g *lockkeeper.GrantSnapshot) {
	b.raw(`{"id":`)
	b.string(g.ID)
	b.raw(`,"holder":`)
	b.string(g.Holder)
	b.raw(`,"read_paths":`)
	b.strings(g.ReadPaths)
	b.raw(`,"write_paths":`)
	b.strings(g.WritePaths)
	if len(g.UpgradeablePaths) > 0 {
		b.raw(`,"upgradeable_paths":`)
		b.strings(g.UpgradeablePaths)
	}
	b.raw(`,"acquired_at":`)
	b.time(g.AcquiredAt)
	b.raw(`,"expires_at":`)
	if g.ExpiresAt == nil {
		b.raw("null")
	} else {
		b.time(*g.ExpiresAt)
	}
	b.raw(`,"heartbeat_at":`)
	b.time(g.HeartbeatAt)
	b.raw(`,"released":`)
	b.text = strconv.AppendBool(b.text, g.Released)
	b.raw(`,"fence":`)
	b.text = strconv.AppendUint(b.text, g.Fence, 10)
	b.raw(`,"policy":`)
	b.string(g.Policy)
	b.raw(`,"space":`)
	b.string(g.Space)
	b.raw(`,"age_seconds":`)
	b.number(g.Age)
	if g.Process != nil {
		b.raw(`,"process":`)
		b.process(g.Process)
	}
	if len(g.Metadata) > 0 {
		b.raw(`,"metadata":`)
		b.texts(g.Metadata)
	}
	b.raw("}")
}

func (b *spelling) process(p *lockkeeper.Process) {
	b.raw(`{"host":`)
	b.string(p.Host)
	b.raw(`,"boot":`)
	b.string(p.Boot)
	b.raw(`,"pidns":`)
	b.string(p.PIDNS)
	b.raw(`,"pid":`)
	b.text = strconv.AppendInt(b.text, int64(p.PID), 10)
	b.raw(`,"start":`)
	b.text = strconv.AppendUint(b.text, p.Start, 10)
	if p.Group != 0 {
		b.raw(`,"group":`)
		b.text = strconv.AppendInt(b.text, int64(p.Group), 10)
	}
	b.raw("}")
}

// other spells what is rare as encoding/json does.
func (b *spelling) other(value any) {
	text, err := json.Marshal(value)
	if err != nil && b.err == nil {
		b.err = err
	}
	b.text = append(b.text, text...)
}

func (b *spelling) string(s string) {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c >= utf8.RuneSelf, c == '"', c == '\\', c == '<', c == '>', c == '&':
			b.other(s)
			return
		}
	}
	b.text = append(b.text, '"')
	b.text = append(b.text, s...)
	b.text = append(b.text, '"')
}

func (b *spelling) strings(list []string) {
	if list == nil {
		b.raw("null")
		return
	}
	b.raw("[")
	for i, s := range list {
		if i > 0 {
			b.raw(",")
		}
		b.string(s)
	}
	b.raw("]")
}

func (b *spelling) texts(m map[string]string) {
	b.raw("{")
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.raw(",")
		}
		b.string(key)
		b.raw(":")
		b.string(m[key])
	}
	b.raw("}")
}

func (b *spelling) time(t time.Time) {
	if year := t.Year(); year < 0 || year > 9999 {
		b.other(t) // which says what is wrong with it
		return
	}
	b.text = append(b.text, '"')
	b.text = t.AppendFormat(b.text, time.RFC3339Nano)
	b.text = append(b.text, '"')
}

func (b *spelling) number(f float64) {
	if f != 0 && (f < 1e-6 || f >= 1e21) {
		b.other(f)
		return
	}
	b.text = strconv.AppendFloat(b.text, f, 'f', -1, 64)
}
