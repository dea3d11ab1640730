package agent

import (
	"fmt"
	"math"
	"strings"

	"lockkeeper"
)

// Spent is the cost of calls, and the state of a budget that must be stored.
type Spent struct {
	MicroUSD int64 `json:"micro_usd"` // an integer, so that sums are exact
	Tokens   int64 `json:"tokens"`
	Calls    int   `json:"calls"`
	Unpriced int   `json:"unpriced"` // calls with a result and without a price
	Dearest  int64 `json:"dearest_micro_usd"`
}

// With returns the cost including another call.
func (s Spent) With(call Spent) Spent {
	return Spent{MicroUSD: s.MicroUSD + call.MicroUSD, Tokens: s.Tokens + call.Tokens, Calls: s.Calls + call.Calls, Unpriced: s.Unpriced + call.Unpriced,
		Dearest: max(s.Dearest, call.MicroUSD)}
}

// USD returns the cost in dollars.
func (s Spent) USD() float64 { return float64(s.MicroUSD) / 1e6 }

// warnAt is the part of a limit at which the budget warns.
const warnAt = 0.8

// A Budget limits the cost and the tokens of calls. If it is used up, no call starts, and calls
// in progress run to their end. If an agent can be given a limit, its share is reserved
// while it runs, so that all calls together stay within the budget. Other agents can exceed
// it by the cost of the calls in progress.
//
// A Budget is not safe for use by several goroutines at once.
type Budget struct {
	maxMicroUSD int64 // 0: no limit
	maxTokens   int64
	spent       Spent
	reserved    int64 // millionths of dollars, for calls in progress
	sharers     int   // number of the calls in progress
}

// NewBudget returns a budget with limits in dollars and tokens. A part of it may be spent
// already. 0 means no limit.
func NewBudget(usd float64, tokens int64, spent Spent) (*Budget, error) {
	if !(usd >= 0) || usd > 1e9 || tokens < 0 || spent.MicroUSD < 0 || spent.Tokens < 0 {
		return nil, &lockkeeper.InputError{Field: "budget", Value: fmt.Sprintf("$%g, %d tokens", usd, tokens), Reason: "out of range", Next: "give amounts of 0 or more; 0 means no limit"}
	}
	return &Budget{maxMicroUSD: micro(usd), maxTokens: tokens, spent: spent}, nil
}

// micro converts dollars to millionths, rounded up.
func micro(usd float64) int64 {
	if !(usd > 0) {
		return 0
	}
	return int64(math.Ceil(min(usd, 1e9)*1e6 - 1e-6)) // tolerates rounding errors of floats
}

// Spent returns the cost so far.
func (b *Budget) Spent() Spent { return b.spent }

// firstShare is the least share of a call before the cost of any call is known, in millionths
// of dollars. With too little, a call would stop before it is done.
const firstShare = 2_000_000

// Reserve reserves a share of the budget for one of the given number of calls, until Return. Each
// share is an equal part of the free budget, and at least twice the cost of the most expensive
// call so far. If less is free and other calls have a share, ok is false, and the caller waits
// for a Return. Without a limit the share is 0.
func (b *Budget) Reserve(calls int) (usd float64, ok bool) {
	if b.maxMicroUSD == 0 {
		return 0, true
	}
	free := b.maxMicroUSD - b.spent.MicroUSD - b.reserved
	least := 2 * b.spent.Dearest
	if b.spent.Dearest == 0 {
		least = firstShare
	}
	if free < least && b.sharers > 0 {
		return 0, false
	}
	share := min(free, max(least, free/int64(max(1, calls-b.sharers))))
	b.reserved += share
	b.sharers++
	return float64(share) / 1e6, true
}

// Return ends a reservation after the call was added.
func (b *Budget) Return(usd float64) {
	if b.maxMicroUSD > 0 {
		b.reserved -= micro(usd)
		b.sharers--
	}
}

// A BudgetError refuses to start a call.
type BudgetError struct {
	Reason string
	Next   string
}

func (e *BudgetError) Error() string { return lockkeeper.JoinNext("budget: "+e.Reason, e.Next) }

func (e *BudgetError) NextStep() string { return e.Next }

func (*BudgetError) Code() lockkeeper.Code { return lockkeeper.CodeBudget }

// Start refuses a call if a limit is reached. If a call reported no price, a limit in dollars
// is not enough, and Start requires a limit of tokens as well.
func (b *Budget) Start() error {
	used := b.reached(1)
	switch {
	case len(used) > 0:
		return &BudgetError{Reason: "used up: " + strings.Join(used, ", "), Next: "raise the budget, then resume"}
	case b.maxMicroUSD > 0 && b.maxTokens == 0 && b.spent.Unpriced > 0:
		return &BudgetError{Reason: fmt.Sprintf("%d calls reported no price, so the limit in dollars cannot be enforced", b.spent.Unpriced), Next: "limit the tokens as well: --tokens"}
	}
	return nil
}

// Add counts a call, and returns a warning if it reached four fifths of a limit. A failed call
// counts with its known cost.
func (b *Budget) Add(res Result, err error) (warning string) {
	before := b.reached(warnAt)
	b.spent = b.spent.With(CostOf(res, err))
	if after := b.reached(warnAt); len(after) > len(before) {
		return "budget: " + strings.Join(after, ", ")
	}
	return ""
}

func CostOf(res Result, err error) Spent {
	cost := Spent{MicroUSD: micro(res.CostUSD), Tokens: min(max(0, res.Usage.Total()), 1<<50), Calls: 1} // bounded: an agent reports the cost, and sums must not overflow
	if err == nil && !res.Priced {
		cost.Unpriced = 1
	}
	return cost
}

// reached lists the limits that are used up to at least the given part.
func (b *Budget) reached(part float64) (list []string) {
	if b.maxMicroUSD > 0 && float64(b.spent.MicroUSD) >= part*float64(b.maxMicroUSD) {
		list = append(list, fmt.Sprintf("$%.2f of $%.2f", b.spent.USD(), float64(b.maxMicroUSD)/1e6))
	}
	if b.maxTokens > 0 && float64(b.spent.Tokens) >= part*float64(b.maxTokens) {
		list = append(list, fmt.Sprintf("%d of %d tokens", b.spent.Tokens, b.maxTokens))
	}
	return list
}
