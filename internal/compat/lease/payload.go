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

type payload struct {
	Owner     string `json:"owner"`
	Token     string `json:"token"`
	PID       int    `json:"pid"`
	CreatedAt stamp  `json:"created_at"`
	ExpiresAt stamp  `json:"expires_at"`
	RenewedAt stamp  `json:"last_renewed_at"`
}

func (p payload) encode() ([]byte, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	return append(text, '\n'), err
}

// maxLeaseTime bounds durations computed from foreign times: a time.Duration cannot span
// every year that a file may name.
const maxLeaseTime = 100 * 365 * 24 * time.Hour

// ttl returns how long the holder may hold the file after a renewal, by the holder's own
// clock. A payload without a start time gets the default.
func (p payload) ttl() time.Duration {
	begin := p.RenewedAt
	if begin.IsZero() {
		begin = p.CreatedAt
	}
	if begin.IsZero() {
		return Defaults().TTL
	}
	return min(p.ExpiresAt.Sub(begin.Time), maxLeaseTime)
}

// decode parses a payload. Only token and expiry are required, because foreign tools may
// format the other fields differently. With an error it returns the fields it could read.
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
		_ = json.Unmarshal(fields[name], into) // an error does not matter, because these fields are only displayed
	}
	if json.Unmarshal(fields["token"], &p.Token) != nil || p.Token == "" {
		err = errors.New("the token is missing")
	}
	if json.Unmarshal(fields["expires_at"], &p.ExpiresAt) != nil && err == nil {
		err = errors.New("expires_at is missing or invalid")
	}
	return p, err
}

// A stamp is a time in the format of lease files: ISO 8601, UTC with Z, whole seconds.
type stamp struct{ time.Time }

func (s stamp) MarshalJSON() ([]byte, error) {
	return []byte(s.UTC().Format(`"2006-01-02T15:04:05Z"`)), nil
}

// timeLayouts are the ISO 8601 formats that foreign tools write: with fractions of
// seconds, an offset, an offset and a Z, or neither, which means UTC; also without
// seconds, time of day or punctuation. A space may replace the T.
var timeLayouts = []string{time.RFC3339, "2006-01-02T15:04:05-07:00Z", "2006-01-02T15:04:05",
	"2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02",
	"20060102T150405Z0700", "20060102T150405"}

func (s *stamp) UnmarshalJSON(raw []byte) error {
	text, err := strconv.Unquote(string(raw))
	if err != nil {
		return fmt.Errorf("%s is not a string", raw)
	}
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			s.Time = t.UTC()
			return nil
		}
	}
	return fmt.Errorf("%q is not an ISO 8601 time", text)
}

// term returns the stamps of a lease that starts or is renewed at the time now. The end is rounded
// up so that whole seconds do not shorten it. A TTL of zero ends where it begins.
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

func newToken() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
