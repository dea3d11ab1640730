package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"lockkeeper"
)

// The level that Probe reports really confines a command.
//
// shows: GP-5
func TestProbeFindsWhatHolds(t *testing.T) {
	l, err := Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("here: %s; missing: %q", l, l.Missing)
	if l.Landlock != landlockVersion() && l.Landlock != 0 {
		t.Errorf("landlock v%d, the kernel says v%d", l.Landlock, landlockVersion())
	}
	if v := landlockVersion(); v > 0 {
		if why, err := runTrial(t.Context(), Level{Landlock: v}); why != "" || err != nil {
			t.Errorf("landlock v%d does not hold: %s, %v", v, why, err)
		}
	}
	if !l.On() && l.Missing == "" {
		t.Error("nothing, and no reason")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Probe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a trial that was not made: %v", err)
	}
}

// A level that claims more than it enforces is detected.
func TestTrialFindsOutEmptyClaims(t *testing.T) {
	for name, claim := range map[string]Level{
		"writes":     {Landlock: truncates},
		"attributes": {Landlock: landlockVersion(), Namespaces: true},
	} {
		s := newScene(t)
		s.shell(Level{}, `cd "`+s.dir+`"; for d in inside shown outside; do mkdir $d; echo text > $d/file; done`)
		text, err := json.Marshal(claim)
		if err != nil {
			t.Fatal(err)
		}
		if said, code := s.start([]string{self, tryArg, string(text), s.dir}); code != ExitFailed || !strings.Contains(said, "could still") {
			t.Errorf("%s: code %d: %s", name, code, said)
		}
	}
}

// shows: GP-5
func TestChoose(t *testing.T) {
	full, old := Level{Landlock: 7, Namespaces: true}, Level{Landlock: 2, Missing: "user namespaces: not permitted"}
	for _, test := range []struct {
		mode    Mode
		machine Level
		want    Level
		code    lockkeeper.Code
	}{
		{Require, full, full, ""},
		{Require, Level{Landlock: 3}, Level{Landlock: 3}, ""},
		{Require, Level{Namespaces: true, User: true}, Level{Namespaces: true, User: true}, ""},
		{Require, old, Level{}, lockkeeper.CodeRefused},
		{Require, Level{Missing: "no kernel"}, Level{}, lockkeeper.CodeRefused},
		{Prefer, full, full, ""},
		{Prefer, old, old, ""},
		{Prefer, Level{}, Level{}, ""},
		{Off, full, Level{Missing: "switched off"}, ""},
		{"maybe", full, Level{}, lockkeeper.CodeInput},
	} {
		got, err := Choose(test.mode, test.machine)
		if got != test.want || test.code == "" && err != nil || test.code != "" && lockkeeper.CodeOf(err) != test.code {
			t.Errorf("%s of %+v: %+v, %v", test.mode, test.machine, got, err)
		}
		if test.code == lockkeeper.CodeRefused && (!strings.Contains(err.Error(), test.machine.Missing) || !strings.Contains(err.Error(), "next: ")) {
			t.Errorf("says too little: %v", err)
		}
	}
}

func TestLevelsForPeople(t *testing.T) {
	for want, l := range map[string]Level{
		"none": {},
		"landlock v7, only listed files can be read, sockets can be reached":                               {Landlock: 7},
		"landlock v2, only listed files can be read, sockets can be reached, other files can be truncated": {Landlock: 2},
		"landlock v7, own processes, only listed files can be seen":                                        {Landlock: 7, Namespaces: true},
	} {
		if got := l.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
