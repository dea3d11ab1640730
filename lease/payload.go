package lease

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// payload is what a lease file says.
type payload struct {
	Owner     string `json:"owner"`
	Token     string `json:"token"`
	PID       int    `json:"pid"`
	CreatedAt stamp  `json:"created_at"`
	ExpiresAt stamp  `json:"expires_at"`
	RenewedAt stamp  `json:"last_renewed_at"`
}

// encode spells a payload in one form.
func (p payload) encode() ([]byte, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	return append(text, '\n'), err
}

// farthest bounds what is made of times that others wrote: a duration cannot count to
// every year that a file may name.
const farthest = 100 * 365 * 24 * time.Hour

// lasts is how long the holder gave itself, by its own clock at both ends. One that
// does not say since when gets the usual time.
func (p payload) lasts() time.Duration {
	begin := p.RenewedAt
	if begin.IsZero() {
		begin = p.CreatedAt
	}
	if begin.IsZero() {
		return Defaults().TTL
	}
	return min(p.ExpiresAt.Sub(begin.Time), farthest)
}

// decode reads a payload. Token and expiry must be there; a tool that spells the rest in its
// own way holds its lease all the same. With an error it returns what the text says besides,
// to be shown.
func decode(text []byte) (p payload, err error) {
	if json.Unmarshal(text, &p) == nil && p.Token != "" && !p.ExpiresAt.IsZero() {
		return p, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return payload{}, err
	}
	p = payload{}
	for name, into := range map[string]any{"owner": &p.Owner, "pid": &p.PID, "created_at": &p.CreatedAt, "last_renewed_at": &p.RenewedAt} {
		_ = json.Unmarshal(fields[name], into) // only shown
	}
	if json.Unmarshal(fields["token"], &p.Token) != nil || p.Token == "" {
		err = errors.New("it has no token")
	}
	if json.Unmarshal(fields["expires_at"], &p.ExpiresAt) != nil && err == nil {
		err = errors.New("it does not say when it expires")
	}
	return p, err
}

// stamp is a time as lease files spell it: ISO 8601, UTC with Z, whole seconds.
type stamp struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (s stamp) MarshalJSON() ([]byte, error) {
	return []byte(s.UTC().Format(`"2006-01-02T15:04:05Z"`)), nil
}

// spellings are what other tools make of an ISO time: with fractions of seconds,
// with an offset, with an offset and a Z, without either, which means UTC; without
// seconds, without a time of day, without punctuation. A blank may stand for the T.
var spellings = []string{time.RFC3339, "2006-01-02T15:04:05-07:00Z", "2006-01-02T15:04:05",
	"2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02",
	"20060102T150405Z0700", "20060102T150405"}

// UnmarshalJSON implements json.Unmarshaler.
func (s *stamp) UnmarshalJSON(raw []byte) error {
	text, err := strconv.Unquote(string(raw))
	if err != nil {
		return fmt.Errorf("%s is no string", raw)
	}
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range spellings {
		if t, err := time.Parse(layout, text); err == nil {
			s.Time = t.UTC()
			return nil
		}
	}
	return fmt.Errorf("%q is no time in ISO 8601", text)
}

// term makes the stamps of a lease that begins or is renewed at now. Whole seconds
// must not take anything away from it, so the end is rounded up; one of no length
// ends where it begins.
func term(now time.Time, ttl time.Duration) (begin, end stamp) {
	begin = stamp{now.Truncate(time.Second)}
	if ttl <= 0 {
		return begin, begin
	}
	end = stamp{now.Add(ttl).Truncate(time.Second)}
	if end.Before(now.Add(ttl)) {
		end.Time = end.Add(time.Second)
	}
	return begin, end
}

// newToken makes a random UUID.
func newToken() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
