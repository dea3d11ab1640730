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
}

// USD is the money.
func (s Spent) USD() float64 { return float64(s.MicroUSD) / 1e6 }

// warnAt is the part of a limit from which on the budget warns.
const warnAt = 0.8

// Budget holds calls to a sum of money and of tokens. It is no model's judgement: what
// is used up starts nothing. Calls under way run to their end, so it can be passed by
// what they cost; Left bounds each of them where the agent can be told.
//
// A Budget is not safe for use by several goroutines at once.
type Budget struct {
	maxMicroUSD int64 // 0: no limit
	maxTokens   int64
	spent       Spent
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

// Left is the money that is left, and whether there is a limit.
func (b *Budget) Left() (usd float64, limited bool) {
	return float64(max(0, b.maxMicroUSD-b.spent.MicroUSD)) / 1e6, b.maxMicroUSD > 0
}

// BudgetError refuses to start a call.
type BudgetError struct {
	Reason string
	Spent  Spent
	Next   string
}

func (e *BudgetError) Error() string { return "budget: " + e.Reason + "; next: " + e.Next }

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
	b.spent.Calls++
	b.spent.MicroUSD += micro(res.CostUSD)
	b.spent.Tokens += min(max(0, res.Usage.Total()), 1<<50) // what an agent reports is not to make the sum overflow
	if err == nil && !res.Priced {
		b.spent.Unpriced++
	}
	if after := b.reached(warnAt); len(after) > len(before) {
		return "budget: " + strings.Join(after, ", ")
	}
	return ""
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
