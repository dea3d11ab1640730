package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// certainly returns a directory with a few files, and a function that plans a command in it.
func certainly(t *testing.T) (dir string, plan func(command string) Effects) {
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
	return dir, func(command string) Effects { return effectsOf(command, dir, os.LookupEnv) }
}

// Commands that replace a whole file are recognized. Commands that append to a file or edit it
// are not mistaken for them.
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

// Only source text that certainly runs counts as a program. A program's input and shell text do not.
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
