package lease

import (
	"slices"
	"strings"
	"time"
)

// payload is what the lease file says of a hold. A group of readers is one holder,
// for as long as the last of them.
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

// last is the part that ends last.
func (h *hold) last() stay {
	return slices.MaxFunc(h.By, func(a, b stay) int { return a.ExpiresAt.Compare(b.ExpiresAt.Time) })
}

func (h *hold) owners() (names []string) {
	for _, s := range h.By {
		names = append(names, s.Owner)
	}
	return names
}

// find is where a token's part in the hold is; -1: it has none.
func (h *hold) find(token string) int {
	return slices.IndexFunc(h.By, func(s stay) bool { return s.Token == token })
}

// isLive reports whether somebody's time is not past.
func (h *hold) isLive(now Reading, grace time.Duration) bool {
	return slices.ContainsFunc(h.By, func(s stay) bool { return !s.isPast(now, grace) })
}

// with is the hold with another part, without those of readers whose time is past.
func (h *hold) with(s stay, now Reading, grace time.Duration) *hold {
	next := h.without(s.Token, now, grace)
	next.By = append(next.By, s)
	return next
}

// without is the hold without a token's part, and without those whose time is past.
func (h *hold) without(token string, now Reading, grace time.Duration) *hold {
	next := &hold{Token: h.Token, Shared: h.Shared}
	for _, s := range h.By {
		if s.Token != token && !s.isPast(now, grace) {
			next.By = append(next.By, s)
		}
	}
	return next
}
