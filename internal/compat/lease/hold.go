package lease

import (
	"slices"
	"strings"
	"time"
)

// payload returns the content of the lease file for a hold. A group of readers is one
// holder that lasts as long as its last member.
func (h *hold) payload() payload {
	first := h.By[0].payload
	if !h.Shared {
		return first
	}
	last := h.last()
	group := payload{Token: h.Token, PID: last.PID, CreatedAt: first.CreatedAt, ExpiresAt: last.ExpiresAt, RenewedAt: last.RenewedAt}
	for _, s := range h.By {
		if s.CreatedAt.Before(group.CreatedAt.Time) {
			group.CreatedAt = s.CreatedAt
		}
	}
	group.Owner = "read by " + strings.Join(h.owners(), ", ")
	return group
}

// last returns the member that expires last.
func (h *hold) last() member {
	return slices.MaxFunc(h.By, func(a, b member) int { return a.ExpiresAt.Compare(b.ExpiresAt.Time) })
}

func (h *hold) owners() (names []string) {
	for _, s := range h.By {
		names = append(names, s.Owner)
	}
	return names
}

// find returns the index of the member with a token, or -1.
func (h *hold) find(token string) int {
	return slices.IndexFunc(h.By, func(s member) bool { return s.Token == token })
}

// isCurrent reports whether a member has not expired.
func (h *hold) isCurrent(now Reading, grace time.Duration) bool {
	return slices.ContainsFunc(h.By, func(s member) bool { return !s.isExpired(now, grace) })
}

// with returns the hold with s added and expired members removed.
func (h *hold) with(s member, now Reading, grace time.Duration) *hold {
	next := h.without(s.Token, now, grace)
	next.By = append(next.By, s)
	return next
}

// without returns the hold without the member with a token and without expired members.
func (h *hold) without(token string, now Reading, grace time.Duration) *hold {
	next := &hold{Token: h.Token, Shared: h.Shared}
	for _, s := range h.By {
		if s.Token != token && !s.isExpired(now, grace) {
			next.By = append(next.By, s)
		}
	}
	return next
}
