package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockkeeper/internal/session/refusal"
)

// A Ticket records that a session was refused a path and must be told when the path is free.
type Ticket struct {
	Number int       `json:"number"`
	Path   string    `json:"path"`
	At     time.Time `json:"at"`
}

// ticketsKept is the lifetime of a ticket, and maxTickets limits the tickets of a session. A
// session that exceeds it has moved on from its oldest requests.
const (
	ticketsKept = 12 * time.Hour
	maxTickets  = 20
)

// ticket returns the number of the session's ticket for a path, and creates the ticket if needed.
func (s *Session) ticket(path string) (int, error) {
	if i := slices.IndexFunc(s.rec.Tickets, func(t Ticket) bool { return t.Path == path }); i >= 0 {
		s.rec.Tickets[i].At = s.registry.now()
		return s.rec.Tickets[i].Number, nil
	}
	number, err := s.registry.number()
	if err != nil {
		return 0, err
	}
	s.rec.Tickets = append(s.rec.Tickets, Ticket{Number: number, Path: path, At: s.registry.now()})
	if over := len(s.rec.Tickets) - maxTickets; over > 0 {
		s.rec.Tickets = s.rec.Tickets[over:]
	}
	return number, nil
}

// number returns the next ticket number of the codebase. The number is not a position in a queue.
func (b *Registry) number() (n int, err error) {
	f, err := lockFile(filepath.Join(b.dir, "tickets"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0, err
	}
	n, _ = strconv.Atoi(strings.TrimSpace(string(text))) // an invalid number restarts the count
	n++
	_, err = f.WriteAt([]byte(fmt.Sprintf("%-20d\n", n)), 0)
	return n, err
}

// News reports the refused paths that are now free and the requests for paths that the session
// holds, each once.
func (s *Session) News(ctx context.Context) (news []string, err error) {
	if news, err = s.asked(); err != nil {
		return nil, err
	}
	var left []Ticket
	for _, t := range s.rec.Tickets {
		if s.registry.now().Sub(t.At) > ticketsKept {
			continue
		}
		taken, err := s.others(ctx, writes([]string{t.Path}))
		switch {
		case err != nil:
			return news, err
		case len(taken) > 0:
			left = append(left, t)
		default:
			news = append(news, refusal.Free(t.Path, t.Number))
		}
	}
	s.rec.Tickets = left
	return news, nil
}
