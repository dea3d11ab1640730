package access

import (
	"context"
	"time"
)

// TicketLife is how long a ticket can be used.
const TicketLife = 10 * time.Minute

// ticketsOfOne is how many tickets a person has at once.
const ticketsOfOne = 100

// Ticket returns a secret that logs a person in once, within TicketLife.
func (b *Book) Ticket(ctx context.Context, p Person, now time.Time) (string, error) {
	if err := b.sweep(tickets, now, ticketsOfOne-1); err != nil {
		return "", err
	}
	return b.issue(ctx, tickets, p, now.Add(TicketLife))
}

// Redeem uses up a ticket and returns the person it logs in. It returns false if the ticket
// is unknown, used or expired, or if the person was removed.
func (b *Book) Redeem(text string, now time.Time) (Person, bool, error) {
	t, err := b.read(tickets, text)
	if err != nil || t == nil {
		return Person{}, false, err
	}
	if first, err := b.revoke(tickets, t.file); err != nil || !first || !now.Before(t.Expires) {
		return Person{}, false, err
	}
	return b.Still(Person{id: t.Person})
}
