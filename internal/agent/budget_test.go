package agent

import (
	"errors"
	"math"
	"strings"
	"testing"

	"lockkeeper"
)

// A budget warns once for each limit, and starts nothing when one is reached.
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
		warns  string // one letter a call: w for a warning
		starts string // whether a call could start before each, and at last: y or n
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
			if left, limited := b.Left(); left < 0 || left > test.usd || limited != (test.usd > 0) {
				t.Errorf("left %v, %v", left, limited)
			}
		})
	}
}

// A thousand cents are ten dollars, which floats do not know.
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
	b.Add(Result{}, &CrashedError{}) // says no price, because it says nothing
	if s := b.Spent(); s.Unpriced != 0 || s.Calls != 1001 {
		t.Errorf("%+v", s)
	}
	for _, usd := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := NewBudget(usd, 0, Spent{}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%v: %v", usd, err)
		}
	}
}
