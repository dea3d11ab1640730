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
func (a *Accounts) Ticket(ctx context.Context, p Person, now time.Time) (string, error) {
	if err := a.sweep(tickets, now, ticketsOfOne-1); err != nil {
		return "", err
	}
	return a.issue(ctx, tickets, p, now.Add(TicketLife))
}

// Redeem uses up a ticket and returns the person it logs in. It returns false if the ticket
// is unknown, used or expired, or if the person was removed.
func (a *Accounts) Redeem(text string, now time.Time) (Person, bool, error) {
	t, err := a.read(tickets, text)
	if err != nil || t == nil {
		return Person{}, false, err
	}
	if first, err := a.revoke(tickets, t.file); err != nil || !first || !now.Before(t.Expires) {
		return Person{}, false, err
	}
	return a.Still(Person{id: t.Person})
}
