package hook

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Recorded hook calls of the real Claude Code are decoded: which files were shown completely,
// and whether the whole output of a command was shown.
//
// shows: GP-5
func TestRecorded(t *testing.T) {
	text, err := os.ReadFile("testdata/claude.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded map[string]map[string]any
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	long := []byte(strings.Repeat("x\n", 2500))
	want := map[string]struct{ shows, writes, command, cut bool }{
		"a whole file":           {shows: true},
		"the same again":         {},
		"a limit beyond the end": {shows: true},
		"all lines, but not the end of the last one": {shows: true},
		"the first lines":            {},
		"the last lines":             {},
		"a notebook":                 {},
		"a new file":                 {writes: true},
		"a file replaced":            {writes: true},
		"a file edited":              {writes: true},
		"a command":                  {command: true},
		"a command that prints much": {command: true, cut: true},
		"a command that fails":       {command: true, cut: true},
	}
	if len(recorded) != len(want) {
		t.Errorf("%d are recorded", len(recorded))
	}
	for name, w := range want {
		call := recorded[name]
		call["session_id"], call["cwd"] = "A", "/root/runs/1/work"
		input, err := json.Marshal(call)
		if err != nil {
			t.Fatal(err)
		}
		c, err := claude{agent: "claude-code"}.decode(input)
		if err != nil || c.Event != After {
			t.Errorf("%s: %+v %v", name, c, err)
			continue
		}
		shows := len(c.Reads) == 1 && c.showed(c.Reads[0], long)
		if shows != w.shows || (len(c.Writes) == 1) != w.writes || (c.Command != "") != w.command || c.Cut != w.cut {
			t.Errorf("%s: shows %v; %+v", name, shows, c)
		}
	}
}
