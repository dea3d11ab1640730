package agent

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
)

// A budget warns once for each limit. When a limit is reached, no call starts.
func TestBudget(t *testing.T) {
	call := func(usd float64, tokens int64) Result {
		return Result{CostUSD: usd, Priced: true, Usage: Usage{Input: tokens / 2, Output: tokens - tokens/2}}
	}
	unpriced := Result{Usage: Usage{Output: 10}}
	for name, test := range map[string]struct {
		usd    float64
		tokens int64
		spent  Spent
		calls  []Result
		warns  string // one letter for each call: w for a warning
		starts string // whether a call can start before each call and at the end: y or n
	}{
		"no limit":             {calls: []Result{call(1e6, 1e12)}, warns: "-", starts: "yy"},
		"money":                {usd: 1, calls: []Result{call(0.5, 0), call(0.3, 0), call(0.19, 0), call(0.01, 0)}, warns: "-w--", starts: "yyyyn"},
		"tokens":               {tokens: 100, calls: []Result{call(0, 79), call(0, 1), call(0, 20)}, warns: "-w-", starts: "yyyn"},
		"both":                 {usd: 1, tokens: 100, calls: []Result{call(0.9, 10), call(0, 75), call(0, 15)}, warns: "ww-", starts: "yyyn"},
		"past it at once":      {usd: 1, calls: []Result{call(3, 0)}, warns: "w", starts: "yn"},
		"exactly":              {usd: 0.3, calls: []Result{call(0.1, 0), call(0.1, 0), call(0.1, 0)}, warns: "--w", starts: "yyyn"},
		"spent before":         {usd: 1, spent: Spent{MicroUSD: 900_000}, calls: []Result{call(0.05, 0), call(0.05, 0)}, warns: "--", starts: "yyn"},
		"used up before":       {usd: 1, spent: Spent{MicroUSD: 1_000_000}, starts: "n"},
		"no price":             {usd: 1, calls: []Result{unpriced}, warns: "-", starts: "yn"},
		"no price, but tokens": {usd: 1, tokens: 100, calls: []Result{unpriced}, warns: "-", starts: "yy"},
		"hostile amounts": {usd: 1, tokens: 100, calls: []Result{call(-5, -7), call(math.NaN(), math.MaxInt64), call(math.Inf(1), math.MaxInt64)},
			warns: "-ww", starts: "yynn"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := NewBudget(test.usd, test.tokens, test.spent)
			if err != nil {
				t.Fatal(err)
			}
			starts, warns := "", ""
			start := func() {
				err := b.Start()
				var used *BudgetError
				switch {
				case err == nil:
					starts += "y"
				case errors.As(err, &used) && strings.Contains(err.Error(), "; next: "):
					starts += "n"
				default:
					t.Errorf("%T %v", err, err)
				}
			}
			start()
			for _, c := range test.calls {
				if b.Add(c, nil) == "" {
					warns += "-"
				} else {
					warns += "w"
				}
				start()
			}
			if starts != test.starts || warns != test.warns {
				t.Errorf("starts %s, warns %s; want %s, %s; %+v", starts, warns, test.starts, test.warns, b.Spent())
			}
		})
	}
}

// A share is reserved for each running call. Together the calls cannot exceed the limit, and no
// call gets too small a share as long as it can wait for the others.
func TestBudgetIsShared(t *testing.T) {
	const calls = 10
	b, err := NewBudget(10, 0, Spent{})
	if err != nil {
		t.Fatal(err)
	}
	reserve := func(want ...float64) (shares []float64) {
		t.Helper()
		for {
			usd, ok := b.Reserve(calls)
			if !ok {
				break
			}
			shares = append(shares, usd)
		}
		if !slices.Equal(shares, want) {
			t.Fatalf("shares %v, want %v", shares, want)
		}
		return shares
	}
	end := func(usd, cost float64) {
		b.Add(Result{CostUSD: cost, Priced: true}, nil)
		b.Return(usd)
	}
	for _, usd := range reserve(2, 2, 2, 2, 2) { // the cost of a call is still unknown
		end(usd, 0.25)
	}
	for range calls {
		usd, ok := b.Reserve(calls)
		if !ok || usd != 0.875 {
			t.Fatalf("%v, %v", usd, ok)
		}
	}
	for i := range calls { // they cost more than expected
		if _, ok := b.Reserve(calls); ok && i == 0 {
			t.Error("more was set aside than there is")
		}
		end(0.875, 0.85)
	}
	if usd, ok := b.Reserve(1); !ok || usd != 0.25 {
		t.Errorf("the last one is to have what is left: %v, %v", usd, ok)
	}
	if _, ok := b.Reserve(1); ok || b.Spent().Dearest != 850_000 {
		t.Errorf("it was given away twice, %+v", b.Spent())
	}
	end(0.25, 0.26)
	if b.Start() == nil {
		t.Error("it is used up")
	}
	unlimited, err := NewBudget(0, 0, Spent{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if usd, ok := unlimited.Reserve(1); !ok || usd != 0 {
			t.Errorf("%v, %v", usd, ok)
		}
		unlimited.Return(0)
	}
}

// The sum of a thousand cents is exactly ten dollars, unlike with floats.
func TestBudgetIsExact(t *testing.T) {
	b, err := NewBudget(10, 0, Spent{})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if err := b.Start(); err != nil {
			t.Fatal(err, b.Spent())
		}
		b.Add(Result{CostUSD: 0.01, Priced: true}, nil)
	}
	if s := b.Spent(); b.Start() == nil || s.MicroUSD != 10_000_000 || s.Calls != 1000 {
		t.Errorf("%+v", s)
	}
	b.Add(Result{}, &Error{Kind: Crashed}) // has no output and so no price
	if s := b.Spent(); s.Unpriced != 0 || s.Calls != 1001 {
		t.Errorf("%+v", s)
	}
	for _, usd := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := NewBudget(usd, 0, Spent{}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%v: %v", usd, err)
		}
	}
}
