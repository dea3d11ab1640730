package sandbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
)

// Paths that lead through links are refused before anything runs.
func TestHostilePathsAreRefused(t *testing.T) {
	s := newScene(t)
	for link, target := range map[string]string{"/link": s.root, "/linked": s.workspace, "/dangling": s.dir + "/nowhere"} {
		if err := os.Symlink(target, s.dir+link); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]Confinement{
		"missing":         {Write: []string{s.dir + "/missing"}},
		"a link":          {Write: []string{s.dir + "/link"}},
		"below a link":    {Write: []string{s.dir + "/link/sub"}},
		"a dangling link": {Write: []string{s.dir + "/dangling"}},
		"relative":        {Write: []string{"work"}},
		"not clean":       {Write: []string{s.workspace + "/../../root"}},
		"everything":      {Write: []string{"/"}},
		"empty":           {Write: []string{""}},
		"NUL":             {Write: []string{s.workspace + "\x00"}},
		"a device":        {Write: []string{"/dev/null"}},
		"a link to read":  {Write: []string{s.workspace}, Read: []string{s.dir + "/link"}},
		"nothing to read": {Read: []string{s.dir + "/missing"}},
		"all to read":     {Read: []string{"/"}},
		"a file as cache": {Scratch: []Scratch{{Path: s.root + "/file"}}},
		"a file as home":  {Private: s.root + "/file"},
		"a link as home":  {Private: s.dir + "/linked"},
		"one of many":     {Write: []string{s.workspace, s.dir + "/missing"}},
	} {
		argv, err := Wrap(Level{Landlock: 1}, c, []string{"true"})
		var wrong *lockkeeper.InputError
		if !errors.As(err, &wrong) || argv != nil {
			t.Errorf("%s: %v, %v", name, argv, err)
		}
	}
	if _, err := Wrap(Level{Landlock: 1}, Confinement{}, nil); err == nil {
		t.Error("no command was accepted")
	}
	if argv, err := Wrap(Level{}, s.confinement(), []string{"true"}); err != nil || !slices.Equal(argv, []string{"true"}) {
		t.Errorf("%v, %v", argv, err)
	}
}

// A link that is swapped in after the check is not followed, and the command does not run.
//
// shows: GP-5
func TestSwappedLinkIsNotFollowed(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		argv := s.wrap(l, "sh", "-c", `echo ran; echo changed > "$0/file"`, s.root)
		if err := os.Rename(s.temp, s.temp+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(s.root, s.temp); err != nil {
			t.Fatal(err)
		}
		before := s.shared()
		said, code := s.start(argv)
		if code != ExitFailed || strings.Contains(said, "ran") || !strings.Contains(said, s.temp) {
			t.Errorf("code %d: %s", code, said)
		}
		if after := s.shared(); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	})
}

// A command can write to single files, nested directories, and directories with their own mounts.
func TestOddPlacesAreWritten(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		c := Confinement{Write: []string{s.workspace, s.root + "/file", s.workspace + "/d", s.root + "/sub"}, Read: []string{s.root + "/sub/settings"}}
		if err := os.Mkdir(s.workspace+"/d", 0o755); err != nil {
			t.Fatal(err)
		}
		s.put(s.root+"/sub/settings", "kept")
		argv, err := Wrap(l, c, []string{"sh", "-ec", `echo x > d/new; mv d/new new; echo changed > "$0/file"; echo x > "$0/sub/new"; ! rm "$0/file"; cat "$0/sub/settings"; echo changed > "$0/sub/settings" || true`, s.root})
		if err != nil {
			t.Fatal(err)
		}
		said, code := s.start(argv)
		if code != 0 || !strings.Contains(said, "kept") {
			t.Errorf("code %d: %s", code, said)
		}
		if text, err := os.ReadFile(s.root + "/sub/settings"); err != nil || l.Namespaces && string(text) != "kept" {
			t.Errorf("%q, %v", text, err)
		}
		if text, err := os.ReadFile(s.root + "/file"); err != nil || string(text) != "changed\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// An invalid order runs nothing.
func TestBrokenOrderRunsNothing(t *testing.T) {
	s := newScene(t)
	for _, args := range [][]string{{enterArg}, {enterArg, "{}"}, {enterArg, "{", "echo", "ran"}, {innerArg, "{}", "echo", "ran"}, {tryArg}, {tryArg, "{", "x"},
		{enterArg, `{"Level":{"Landlock":99}, "Write":["/nowhere"]}`, "echo", "ran"}, {enterArg, `{"Level":{"Landlock":1}, "Write":["/nowhere"]}`, "echo", "ran"}} {
		said, code := s.start(append([]string{self}, args...))
		if code != ExitFailed || strings.Contains(said, "ran\n") {
			t.Errorf("%q: code %d: %s", args, code, said)
		}
	}
}
