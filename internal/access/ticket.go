package access

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lockkeeper/durable"
)

// TicketLife is how long a ticket can be used.
const TicketLife = 10 * time.Minute

// ticket is what is known of one.
type ticket struct {
	Person  string    `json:"person"` // the id
	Expires time.Time `json:"expires"`
}

// Ticket makes something that logs a person in, once and soon.
func (b *Book) Ticket(ctx context.Context, p Person, now time.Time) (string, error) {
	b.sweep(now)
	text, id := secret("")
	return text, b.write(ctx, filepath.Join("tickets", id+".json"), ticket{Person: p.id, Expires: now.Add(TicketLife)})
}

// Redeem takes a ticket, and is whom it logs in. One that is unknown, was used, or is too
// old logs nobody in.
func (b *Book) Redeem(text string, now time.Time) (Person, bool, error) {
	path := filepath.Join(b.dir, "tickets", idOf(text)+".json")
	t, err := durable.ReadJSON[ticket](path)
	if errors.Is(err, fs.ErrNotExist) {
		return Person{}, false, nil
	}
	if err != nil {
		return Person{}, false, b.trouble(err)
	}
	switch err := os.Remove(path); { // whoever removes it has it
	case errors.Is(err, fs.ErrNotExist):
		return Person{}, false, nil
	case err != nil:
		return Person{}, false, b.trouble(err)
	}
	if !now.Before(t.Expires) {
		return Person{}, false, nil
	}
	return b.Still(Person{id: t.Person})
}

// sweep forgets tickets that nobody used in time. It does what it can: they log nobody
// in anyway, and the next sweep meets them again.
func (b *Book) sweep(now time.Time) {
	dir := filepath.Join(b.dir, "tickets")
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if t, err := durable.ReadJSON[ticket](path); err == nil && !now.Before(t.Expires) {
			os.Remove(path)
		}
	}
}
