package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// certainly is a directory with a few files, and the plan of a command in it.
func certainly(t *testing.T) (dir string, plan func(command string) Plan) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b.txt", "sub/c.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func(command string) Plan { return planOf(command, dir, os.LookupEnv) }
}

// A file counts as seen only where a command certainly showed all of it.
//
// shows: GP-5
func TestShown(t *testing.T) {
	dir, plan := certainly(t)
	for command, want := range map[string]string{
		"cat b.txt":                                 "b.txt",
		"/bin/cat -n b.txt sub/c.txt":               "b.txt sub/c.txt",
		"nl -ba b.txt":                              "b.txt",
		"bat --plain b.txt":                         "b.txt",
		"cd sub && cat c.txt":                       "sub/c.txt",
		"cd sub && echo --- && cat c.txt; make":     "sub/c.txt",
		"cat b.txt 2>/dev/null":                     "b.txt",
		"(cd sub; cat c.txt)":                       "sub/c.txt",
		"for f in b.txt sub/c.txt; do cat $f; done": "b.txt sub/c.txt",
		"bash -c 'cat b.txt'":                       "b.txt",
		"head -n1 b.txt":                            "",
		"tail -n1 b.txt":                            "",
		"sed -n 1p b.txt":                           "",
		"less b.txt":                                "",
		"cat b.txt > /dev/null":                     "",
		"cat b.txt >> copy":                         "",
		"cat b.txt &> /dev/null":                    "",
		"cat b.txt >&2":                             "",
		"cat b.txt | head -1":                       "",
		"nl b.txt | wc -l":                          "",
		"false && cat b.txt":                        "",
		"make && cat b.txt":                         "",
		"cd nowhere && cat b.txt":                   "",
		"true || cat b.txt":                         "",
		"if test -e x; then cat b.txt; fi":          "",
		"while test -e x; do cat b.txt; done":       "",
		"case $x in y) cat b.txt;; esac":            "",
		"for f in $list; do cat b.txt; done":        "",
		"for f in; do cat b.txt; done":              "",
		"x=$(cat b.txt)":                            "",
		"diff <(cat b.txt) x":                       "",
		"{ cat b.txt; } > /dev/null":                "",
		"(cat b.txt) | tail -1":                     "",
		"cat b.txt &":                               "",
		"exit; cat b.txt":                           "",
		"exec >/dev/null; cat b.txt":                "",
		"set -e; make; cat b.txt":                   "",
		"cat() { :; }; cat b.txt":                   "",
		"alias cat=true; cat b.txt":                 "",
		"f() { cat b.txt; }":                        "",
		"./cat b.txt":                               "",
		"cat --help b.txt":                          "",
		"bat -r 1:3 b.txt":                          "",
		"nl -b a b.txt":                             "",
		"timeout 1 cat b.txt":                       "",
		"xargs -r cat b.txt":                        "",
		"bash -n -c 'cat b.txt'":                    "",
		"bash x.sh <<'E'\ncat b.txt\nE":             "",
		"eval 'cat b.txt'":                          "",
		"bash -c 'cat b.txt' | head -1":             "",
		"exec cat b.txt >/dev/null":                 "",
	} {
		t.Run(command, func(t *testing.T) {
			var got []string
			for _, r := range plan(command).Reads {
				name, err := filepath.Rel(dir, r.File)
				if err != nil || !r.Whole {
					t.Errorf("%+v %v", r, err)
				}
				got = append(got, name)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("shows %q, want %q", got, want)
			}
		})
	}
	if files := fitting([]Touch{{File: filepath.Join(dir, "b.txt")}}); len(files) != 1 {
		t.Error("a small file is not shown")
	}
	if err := os.WriteFile(filepath.Join(dir, "b.txt"), make([]byte, maxShown+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if files := fitting([]Touch{{File: filepath.Join(dir, "b.txt")}}); len(files) != 0 {
		t.Error("what hosts cut is shown")
	}
}

// Forms that replace all of a file are known, and those that add to it or change it are not
// taken for them.
//
// shows: GP-5
func TestReplaced(t *testing.T) {
	dir, plan := certainly(t)
	file := filepath.Join(dir, "b.txt")
	for command, want := range map[string]bool{
		"> b.txt":                               true,
		": >| b.txt":                            true,
		"sort sub/c.txt > b.txt":                true,
		"make &> b.txt":                         true,
		"{ echo x; } > b.txt":                   true,
		"(echo x) > b.txt":                      true,
		"/bin/echo x > b.txt":                   true,
		"command echo x > b.txt":                true,
		"cp sub/c.txt b.txt":                    true,
		"env A=b /bin/cp sub/c.txt b.txt":       true,
		"mv sub/c.txt b.txt":                    true,
		"install -m 644 sub/c.txt b.txt":        true,
		"echo x | tee b.txt":                    true,
		"echo x | sponge b.txt":                 true,
		"dd if=sub/c.txt of=b.txt":              true,
		"sort -o b.txt sub/c.txt":               true,
		"sort -uob.txt sub/c.txt":               true,
		"sort --output=b.txt sub/c.txt":         true,
		"ln -sf sub/c.txt b.txt":                true,
		"echo x >> b.txt":                       false,
		"echo x | tee -a b.txt":                 false,
		"sed -i s/x/y/ b.txt":                   false,
		"perl -pi -e s/x/y/ b.txt":              false,
		"dd if=sub/c.txt of=b.txt conv=notrunc": false,
		"cp -n sub/c.txt b.txt":                 false,
		"touch b.txt":                           false,
		"git checkout -- b.txt":                 false,
	} {
		t.Run(command, func(t *testing.T) {
			known := false
			for _, w := range plan(command).Writes {
				if w.File == file {
					known = true
					if w.Whole != want {
						t.Errorf("whole is %v", w.Whole)
					}
				}
			}
			if !known {
				t.Error("it is not known to write")
			}
		})
	}
}

// Only what certainly runs as a program is one: not what it reads, nor what a shell says.
//
// shows: GP-5
func TestPrograms(t *testing.T) {
	_, plan := certainly(t)
	for command, want := range map[string]string{
		"python3 -c 'print(1)'":                            "print(1)",
		"python3 - <<'E'\nprint(1)\nE":                     "print(1)",
		"cd sub && ruby -e 'p 1'":                          "p 1",
		"perl -we 'print 1' b.txt":                         "print 1",
		"bash -c \"node -e 'f(1)'\"":                       "f(1)",
		"python3 -c 'print(1)' <<'E'\nopen\nE":             "print(1)",
		"python3 x.py <<'E'\nopen('b.txt','w')\nE":         "",
		"python3 $x <<'E'\nopen('b.txt','w')\nE":           "",
		"cat > notes <<'E'\nopen('b.txt','w')\nE":          "",
		"test -e x || python3 -c 'print(1)'":               "",
		"exit; python3 -c 'print(1)'":                      "",
		"until grep -q 'x = true' b.txt; do sleep 1; done": "",
		"git log -S'x = true' -- b.txt":                    "",
		"git commit -m 'b.txt will get x = true'":          "",
	} {
		t.Run(command, func(t *testing.T) {
			if got := strings.TrimSpace(strings.Join(plan(command).Programs, "|")); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
