package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What commands do is known before they run, where they say so.
//
// shows: GP-5
func TestPlan(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"app/a.rb", "app/b.rb", "lib/c.rb"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{
		"cat > app/a.rb <<'EOF'\nhello\nEOF":               "WHOLE app/a.rb",
		"echo x >> app/a.rb":                               "w app/a.rb",
		"make > build.log 2>&1":                            "w build.log",
		"echo hi > /dev/null":                              "WHOLE /dev/null",
		"sed -i 's/a/b/' app/a.rb app/b.rb":                "w app/a.rb, w app/b.rb",
		"sed -i.bak -e s/a/b/ app/*.rb":                    "w app/a.rb, w app/b.rb",
		"sed -n 1,5p app/a.rb":                             "r app/a.rb",
		"sed --in-place=.o -e 's/x/y/' -- lib/c.rb":        "w lib/c.rb",
		"perl -pi -e 's/a/b/' app/a.rb":                    "w app/a.rb",
		"cd app && echo x > a.rb":                          "WHOLE app/a.rb",
		"(cd app; rm a.rb); rm lib/c.rb":                   "w app/a.rb, w lib/c.rb",
		"f=app/a.rb; sed -i s/a/b/ \"$f\"":                 "w app/a.rb",
		"for f in app/a.rb lib/c.rb; do echo x > $f; done": "WHOLE app/a.rb, WHOLE lib/c.rb",
		"cp lib/c.rb app":                                  "w app/c.rb",
		"mv lib/c.rb app/a.rb":                             "w app/a.rb, w lib/c.rb",
		"mv app old":                                       "tree app, tree old",
		"rm -rf app":                                       "tree app",
		"find app -name '*.pyc' -delete":                   "",
		"find app lib -type f -delete":                     "tree app, tree lib",
		"echo x | tee app/a.rb >/dev/null":                 "WHOLE app/a.rb, w /dev/null",
		"bash -c 'echo x > app/a.rb'":                      "WHOLE app/a.rb",
		"bash <<'E'\necho x > app/a.rb\nE":                 "WHOLE app/a.rb",
		"sudo env A=b nohup sh -c 'rm app/a.rb' &":         "background, w app/a.rb",
		"x=$(rm app/a.rb; echo 1)":                         "w app/a.rb",
		"echo $(rm app/a.rb)":                              "w app/a.rb",
		"python3 -c \"open('app/a.rb','w').write('x')\"":   "w app/a.rb",
		"python3 - <<'E'\nimport pathlib\npathlib.Path('app/a.rb').write_text('x')\nE": "w app/a.rb",
		"node -e \"require('fs').writeFileSync('app/a.rb', 'x')\"":                     "w app/a.rb",
		"python3 -c \"print(open('app/a.rb').read())\"":                                "",
		"dd if=/dev/zero of=app/a.rb":                                                  "WHOLE app/a.rb",
		"git stash":                                                                    "git stash",
		"git stash list":                                                               "",
		"git reset --hard HEAD~1":                                                      "git reset",
		"git reset app/a.rb":                                                           "",
		"git checkout main":                                                            "git checkout",
		"git checkout -b topic":                                                        "",
		"git checkout -- app/a.rb":                                                     "w app/a.rb",
		"git checkout HEAD app/a.rb":                                                   "w app/a.rb",
		"git restore app/a.rb":                                                         "w app/a.rb",
		"git restore --staged app/a.rb":                                                "",
		"git commit -m x":                                                              "",
		"git commit --amend --no-edit":                                                 "git commit",
		"git -c a.b=c rebase main && git status":                                       "git rebase",
		"git clean -fdx":                                                               "git clean",
		"git pull":                                                                     "git pull",
		"lockkeeper off 30m":                                                           "reserved lockkeeper off 30m",
		"env -u CLAUDECODE lockkeeper lock clear":                                      "reserved lockkeeper lock clear",
		"lockkeeper status":                                                            "",
		"cat app/a.rb":                                                                 "r app/a.rb",
		"this is ( not shell":                                                          "",
	} {
		t.Run(command, func(t *testing.T) {
			if got := shown(planOf(command, dir), dir); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// shown is a plan in a few words.
func shown(p Plan, dir string) string {
	var list []string
	rel := func(file string) string {
		if r, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(r) {
			return r
		}
		return file
	}
	for _, w := range p.Writes {
		kind := "w"
		if w.Whole {
			kind = "WHOLE"
		}
		list = append(list, kind+" "+rel(w.File))
	}
	for _, r := range p.Reads {
		list = append(list, "r "+rel(r.File))
	}
	for _, f := range p.Trees {
		list = append(list, "tree "+rel(f))
	}
	for _, g := range p.Git {
		list = append(list, g.Name)
	}
	if p.Background {
		list = append(list, "background")
	}
	if p.Reserved != "" {
		list = append(list, "reserved "+p.Reserved)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

// Nothing that a model can make up stops the reader.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{"a > b", "for i in {1..3}; do git stash; done", "cat <<E\n$(rm x)\nE", "sed -i", "mv -t", "git -C", "env", "find -exec"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, command string) { planOf(command, dir) })
}
