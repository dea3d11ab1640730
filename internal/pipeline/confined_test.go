package pipeline

import (
	"strings"
	"testing"
)

// A socket fits wherever the copies and the temporary files of a machine are.
func TestTempPlace(t *testing.T) {
	short, long := strings.Repeat("s", longestTemp), strings.Repeat("l", longestTemp+1)
	for _, c := range []struct{ home, temp, want string }{{short, "/tmp", short}, {long, short, short}, {long, long, "/tmp"}} {
		if got := tempPlace(c.home, c.temp); got != c.want {
			t.Errorf("%.3s… and %.3s…: %s", c.home, c.temp, got)
		}
	}
	if name := short + "/lk4294967295/supervisor.sock"; len(name) > 107 {
		t.Errorf("%d bytes", len(name))
	}
}
