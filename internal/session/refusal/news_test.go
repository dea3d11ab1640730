package refusal

import "testing"

// Each message is one line, whatever characters paths and reasons contain.
func TestNews(t *testing.T) {
	for got, want := range map[string]string{
		Free("app/user.rb", 18): "FREE app/user.rb (ticket 18): you may write it now. Read it first; it may have changed.",
		Landed("a\nREFUSED b"):  "LANDED your deferred patch of a REFUSED b.",
		NotLanded("app/user.rb", "the file is\x1b[2J another", "20261115T2008"): "NOT LANDED your deferred patch of app/user.rb: the file is [2J another. It is kept: lockkeeper rescue show 20261115T2008.",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
