package agent

import (
	"fmt"
	"math"
	"strings"

	"lockkeeper"
)

// Spent is what calls have cost. It is all that has to be kept of a budget.
type Spent struct {
	MicroUSD int64 `json:"micro_usd"` // in millionths, so that sums are exact
	Tokens   int64 `json:"tokens"`
	Calls    int   `json:"calls"`
	Unpriced int   `json:"unpriced"` // calls that ended with a result and named no price
	Dearest  int64 `json:"dearest_micro_usd"`
}

// With is what was spent with another call.
func (s Spent) With(call Spent) Spent {
	return Spent{MicroUSD: s.MicroUSD + call.MicroUSD, Tokens: s.Tokens + call.Tokens, Calls: s.Calls + call.Calls, Unpriced: s.Unpriced + call.Unpriced,
		Dearest: max(s.Dearest, call.MicroUSD)}
}

// USD is the money.
func (s Spent) USD() float64 { return float64(s.MicroUSD) / 1e6 }

// warnAt is the part of a limit from which on the budget warns.
const warnAt = 0.8

// Budget holds calls to a sum of money and of tokens. It is no model's judgement: what
// is used up starts nothing. Calls under way run to their end. Where an agent can be told
// what it may spend, that is reserved while it runs, so that all calls together cannot
// spend more than there is; others can pass the budget by what they cost.
//
// A Budget is not safe for use by several goroutines at once.
type Budget struct {
	maxMicroUSD int64 // 0: no limit
	maxTokens   int64
	spent       Spent
	reserved    int64 // millionths of dollars, by calls under way
	sharers     int   // how many these are
}

// NewBudget makes a budget of so many dollars and tokens, of which something may be
// spent already. A limit of 0 is none.
func NewBudget(usd float64, tokens int64, spent Spent) (*Budget, error) {
	if !(usd >= 0) || usd > 1e9 || tokens < 0 || spent.MicroUSD < 0 || spent.Tokens < 0 {
		return nil, &lockkeeper.InputError{Field: "budget", Value: fmt.Sprintf("$%g, %d tokens", usd, tokens), Reason: "out of range", Next: "give amounts that are not negative; 0 is no limit"}
	}
	return &Budget{maxMicroUSD: micro(usd), maxTokens: tokens, spent: spent}, nil
}

// micro is money in millionths, rounded up.
func micro(usd float64) int64 {
	if !(usd > 0) {
		return 0
	}
	return int64(math.Ceil(min(usd, 1e9)*1e6 - 1e-6)) // a millionth of a millionth is a float's noise
}

// Spent is what the calls have cost so far.
func (b *Budget) Spent() Spent { return b.spent }

// firstShare is what a call gets at least while nobody knows what one costs, in
// millionths of dollars: with too little it would end before it is done, for nothing.
const firstShare = 2_000_000

// Reserve sets money aside for one of so many calls that are under way or about to be,
// until Return gives it back. Each gets the same part of what is free, and at least twice
// what the dearest call so far has cost: when there is not as much, only the last one
// that is left gets what there is, and the others, who are told not ok, wait for a Return.
// Without a limit it is 0.
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

// Return gives back what Reserve has set aside, once the call was added.
func (b *Budget) Return(usd float64) {
	if b.maxMicroUSD > 0 {
		b.reserved -= micro(usd)
		b.sharers--
	}
}

// BudgetError refuses to start a call.
type BudgetError struct {
	Reason string
	Spent  Spent
	Next   string
}

func (e *BudgetError) Error() string { return lockkeeper.JoinNext("budget: "+e.Reason, e.Next) }

// NextStep implements lockkeeper.NextStep.
func (e *BudgetError) NextStep() string { return e.Next }

// Code implements lockkeeper.CodeOf.
func (*BudgetError) Code() lockkeeper.Code { return lockkeeper.CodeBudget }

// Start refuses a call when a limit is reached. A limit of money that nothing is counted
// against is no limit: once a call has named no price, it takes one of tokens as well.
func (b *Budget) Start() error {
	used := b.reached(1)
	switch {
	case len(used) > 0:
		return &BudgetError{Reason: "used up: " + strings.Join(used, ", "), Spent: b.spent, Next: "raise the budget, then resume"}
	case b.maxMicroUSD > 0 && b.maxTokens == 0 && b.spent.Unpriced > 0:
		return &BudgetError{Reason: fmt.Sprintf("%d calls named no price, so a limit of money cannot be held", b.spent.Unpriced), Spent: b.spent, Next: "set a limit of tokens as well"}
	}
	return nil
}

// Add counts a call, and returns a warning when it is the one that passed four fifths of
// a limit. A call that failed costs what is known of it.
func (b *Budget) Add(res Result, err error) (warning string) {
	before := b.reached(warnAt)
	b.spent = b.spent.With(CostOf(res, err))
	if after := b.reached(warnAt); len(after) > len(before) {
		return "budget: " + strings.Join(after, ", ")
	}
	return ""
}

// CostOf is what one call has cost.
func CostOf(res Result, err error) Spent {
	cost := Spent{MicroUSD: micro(res.CostUSD), Tokens: min(max(0, res.Usage.Total()), 1<<50), Calls: 1} // what an agent reports is not to make the sum overflow
	if err == nil && !res.Priced {
		cost.Unpriced = 1
	}
	return cost
}

// reached lists the limits of which a part is used.
func (b *Budget) reached(part float64) (list []string) {
	if b.maxMicroUSD > 0 && float64(b.spent.MicroUSD) >= part*float64(b.maxMicroUSD) {
		list = append(list, fmt.Sprintf("$%.2f of $%.2f", b.spent.USD(), float64(b.maxMicroUSD)/1e6))
	}
	if b.maxTokens > 0 && float64(b.spent.Tokens) >= part*float64(b.maxTokens) {
		list = append(list, fmt.Sprintf("%d of %d tokens", b.spent.Tokens, b.maxTokens))
	}
	return list
}
