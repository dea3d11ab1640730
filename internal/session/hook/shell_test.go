package hook

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The effects of a command are known before it runs, if its text shows them.
//
// shows: GP-5
func TestPlan(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"app/a.rb", "app/b.rb", "app/sub/d.rb", "lib/c.rb"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../app/sub", filepath.Join(dir, "lib/up")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.patch"), []byte("diff --git a/app/a.rb b/app/a.rb\n--- a/app/a.rb\t2026\n+++ b/app/a.rb\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/lib/new.rb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"curl -sSL -o app/a.rb https://example.org":           "WHOLE app/a.rb",
		"curl -so app/a.rb -H 'X: -o' https://example.org":    "WHOLE app/a.rb",
		"curl https://example.org/-o":                         "",
		"curl -sSLO https://example.org/a/b.rb?x=/y":          "WHOLE b.rb",
		"curl --output-dir app --remote-name https://e.org/b": "WHOLE app/b",
		"curl -H 'X-O: 1' -dO https://example.org/a/b.rb":     "",
		"jq .x app/a.rb > t && mv t app/a.rb":                 "WHOLE t, w app/a.rb, w t",
		"sort < app/a.rb | uniq > t; cp t app/a.rb":           "WHOLE t, w app/a.rb",
		"cat app/a.rb | sponge app/a.rb":                      "r app/a.rb, w app/a.rb",
		"date | sponge app/a.rb":                              "WHOLE app/a.rb",
		"echo app/a.rb > t && mv t app/a.rb":                  "WHOLE app/a.rb, WHOLE t, w t",
		"cat app/a.rb; date > t; mv t app/a.rb":               "WHOLE app/a.rb, WHOLE t, r app/a.rb, w t",
		"sort -o app/a.rb app/a.rb":                           "w app/a.rb",
		"mv \"$made\" app/a.rb":                               "w app/a.rb",
		"truncate -s 0 app/a.rb":                              "WHOLE app/a.rb",
		"truncate --size=10 app/a.rb app/b.rb":                "WHOLE app/a.rb, WHOLE app/b.rb",
		"truncate -s +10 app/a.rb":                            "w app/a.rb",
		"ruby -Ilib -Itest test/user_test.rb":                 "",
		"ruby -rminitest/autorun test/user_test.rb":           "",
		"perl -Ilib -MList::Util t/user.t":                    "",
		"perl -i.bak -pe s/a/b/ app/a.rb":                     "w app/a.rb",
		"wget -qO lib/c.rb https://example.org":               "WHOLE lib/c.rb",
		"wget -o log https://example.org":                     "",
		"awk -i inplace '{print 1}' app/a.rb n=1 app/b.rb":    "w app/a.rb, w app/b.rb",
		"gawk -i inplace -f prog.awk app/a.rb":                "w app/a.rb",
		"awk '{print}' app/a.rb":                              "",
		"patch -p1 < x.patch":                                 "w app/a.rb, w lib/new.rb",
		"patch -p1 -i x.patch":                                "w app/a.rb, w lib/new.rb",
		"patch -d app < x.patch":                              "w app/a.rb, w app/new.rb",
		"patch app/b.rb x.patch":                              "w app/b.rb",
		"patch -p 1 <<'E'\n--- a/lib/c.rb\n+++ b/lib/c.rb\nE": "w lib/c.rb",
		"git apply x.patch":                                   "w app/a.rb, w lib/new.rb",
		"git apply -R --directory=sub < x.patch":              "w sub/app/a.rb, w sub/lib/new.rb",
		"git apply --check x.patch":                           "",
		"cat > app/a.rb <<'EOF'\nhello\nEOF":                  "WHOLE app/a.rb",
		"echo x >> app/a.rb":                                  "w app/a.rb",
		"make > build.log 2>&1":                               "WHOLE build.log",
		"echo hi > /dev/null":                                 "WHOLE /dev/null",
		"sed -i 's/a/b/' app/a.rb app/b.rb":                   "w app/a.rb, w app/b.rb",
		"sed -i.bak -e s/a/b/ app/*.rb":                       "w app/a.rb, w app/b.rb",
		"sed -n 1,5p app/a.rb":                                "r app/a.rb",
		"sed --in-place=.o -e 's/x/y/' -- lib/c.rb":           "w lib/c.rb",
		"perl -pi -e 's/a/b/' app/a.rb":                       "w app/a.rb",
		"cd app && echo x > a.rb":                             "WHOLE app/a.rb",
		"(cd app; rm a.rb); rm lib/c.rb":                      "w app/a.rb, w lib/c.rb",
		"f=app/a.rb; sed -i s/a/b/ \"$f\"":                    "w app/a.rb",
		"for f in app/a.rb lib/c.rb; do echo x > $f; done":    "WHOLE app/a.rb, WHOLE lib/c.rb",
		"cp lib/c.rb app":                                     "WHOLE app/c.rb",
		"mv lib/c.rb app/a.rb":                                "WHOLE app/a.rb, w lib/c.rb",
		"mv app old":                                          "tree app, tree old",
		"rm -rf app":                                          "tree app",
		"find app -name '*.pyc' -delete":                      "",
		"find app lib -type f -delete":                        "tree app, tree lib",
		"echo x | tee app/a.rb >/dev/null":                    "WHOLE /dev/null, WHOLE app/a.rb",
		"bash -c 'echo x > app/a.rb'":                         "WHOLE app/a.rb",
		"bash <<'E'\necho x > app/a.rb\nE":                    "WHOLE app/a.rb",
		"sudo env A=b nohup sh -c 'rm app/a.rb' &":            "background, w app/a.rb",
		"x=$(rm app/a.rb; echo 1)":                            "w app/a.rb",
		"echo $(rm app/a.rb)":                                 "w app/a.rb",
		"python3 -c \"open('app/a.rb','w').write('x')\"":      "WHOLE app/a.rb",
		"python3 - <<'E'\nimport pathlib\npathlib.Path('app/a.rb').write_text('x')\nE": "WHOLE app/a.rb",
		"node -e \"require('fs').writeFileSync('app/a.rb', 'x')\"":                     "WHOLE app/a.rb",
		"python3 -c \"print(open('app/a.rb').read())\"":                                "",
		"dd if=/dev/zero of=app/a.rb":                                                  "WHOLE app/a.rb",
		"git stash":                                                                    "git stash",
		"git stash list":                                                               "",
		"git reset --hard HEAD~1":                                                      "git reset",
		"git reset app/a.rb":                                                           "",
		"git checkout main":                                                            "git checkout",
		"git checkout -b topic":                                                        "git checkout",
		"git switch -c topic":                                                          "git switch",
		"git checkout -- app/a.rb":                                                     "w app/a.rb",
		"git checkout HEAD app/a.rb":                                                   "w app/a.rb",
		"git restore app/a.rb":                                                         "w app/a.rb",
		"git restore --staged app/a.rb":                                                "",
		"git commit -m x":                                                              "",
		"git commit --amend --no-edit":                                                 "git commit",
		"git -c a.b=c rebase main && git status":                                       "git rebase",
		"git clean -fdx":                                                               "git clean",
		"git pull":                                                                     "git pull",
		"cat app/a.rb":                                                                 "r app/a.rb",
		"git checkout release-1.2":                                                     "git checkout",
		"git checkout -f":                                                              "git checkout",
		"git checkout --detach v1.0":                                                   "git checkout",
		"git checkout app/a.rb":                                                        "w app/a.rb",
		"git checkout app/a.rb --":                                                     "git checkout",
		"git checkout HEAD -- '*.rb'":                                                  "git checkout",
		"git switch -m main":                                                           "git switch",
		"git restore ':/'":                                                             "git restore",
		"git restore '*.rb'":                                                           "git restore",
		"git restore --pathspec-from-file=x":                                           "git restore",
		"git restore app":                                                              "tree app",
		"git checkout-index -fa":                                                       "git checkout-index",
		"git --work-tree=app checkout -f":                                              "git checkout",
		"git -c 'alias.x=!rm app/a.rb' x":                                              "w app/a.rb",
		"tee {app/a,lib/c}.rb":                                                         "WHOLE app/a.rb, WHOLE lib/c.rb",
		"for i in 1 2; do tee app/{a,b}.rb; done":                                      "WHOLE app/a.rb, WHOLE app/b.rb",
		"cp --target-directory=app lib/c.rb":                                           "WHOLE app/c.rb",
		"cp -tapp lib/c.rb":                                                            "WHOLE app/c.rb",
		"mv -T lib app":                                                                "tree app, tree lib",
		"make >& app/a.rb":                                                             "WHOLE app/a.rb",
		"make >&2 2>&-":                                                                "",
		"echo x > $'app/a\\x2erb'":                                                     "WHOLE app/a.rb",
		"ln app/a.rb hard":                                                             "w hard",
		"ln -s app/a.rb soft":                                                          "w soft",
		"echo x > lib/up/../b.rb":                                                      "WHOLE app/b.rb",
		"env -S 'sh -c' 'rm app/a.rb'":                                                 "w app/a.rb",
		"script -qec 'rm app/a.rb' /dev/null":                                          "w app/a.rb",
		"apply_patch <<'E'\n*** Update File: app/a.rb\nE":                              "w app/a.rb",
		"echo x > ~/notes":                                                             "WHOLE " + filepath.Join(os.Getenv("HOME"), "notes"),
		"git -c alias.x='checkout -f' x":                                               "git checkout",
		"cat <(rm app/a.rb) > x":                                                       "WHOLE x, w app/a.rb",
		"true > $(rm app/a.rb)":                                                        "w app/a.rb",
		"export X=$(rm app/a.rb)":                                                      "w app/a.rb",
		"[[ $(rm app/a.rb) ]]":                                                         "w app/a.rb",
		"this is ( not shell":                                                          "",
	} {
		t.Run(command, func(t *testing.T) {
			if got := shown(effectsOf(command, dir, os.LookupEnv), dir); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Reserved commands of this program are found in every spelling.
//
// shows: DL-72
func TestReservedWords(t *testing.T) {
	dir := t.TempDir()
	for link, name := range map[string]string{"lk": ownProgram, "lh": ownHook} {
		file := os.WriteFile(filepath.Join(dir, name), nil, 0o755)
		if err := errors.Join(file, os.Symlink(name, filepath.Join(dir, link))); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) { return dir, name == "PATH" }
	for command, want := range map[string]bool{
		"lockkeeper off 30m":                                         true,
		"/usr/bin/lockkeeper off 30m":                                true,
		"lockkeeper --dir . off 30m":                                 true,
		"env -u CLAUDECODE lockkeeper lock clear":                    true,
		"env -u CLAUDECODE lockkeeper --dir . init --undo --yes":     true,
		"lockkeeper init claude --undo=true":                         true,
		"env -S '-u CLAUDECODE lockkeeper init claude --undo --yes'": true,
		"env '-S-u CLAUDECODE lockkeeper off 1h'":                    true,
		"$'lockkeepe\\162' off 30m":                                  true,
		"lk off 30m":                                                 true,
		"./lk off 30m":                                               true,
		"env -u CLAUDECODE script -qec \"lockkeeper --dir . off 30m\" /dev/null <<< off": true,
		"xargs lockkeeper <<< 'off 1h'":                                                 true,
		"echo off 1h | xargs lockkeeper":                                                true,
		"echo release x | xargs -n1 lockkeeper lock":                                    true,
		"git ls-files | xargs lockkeeper why":                                           false,
		"lockkeeper lock release g1":                                                    true,
		"lockkeeper lock --dir lock release g1":                                         true,
		"sh -c 'lockkeeper lock force-release x --reason y'":                            true,
		"printf x | lockkeeper hook claude-code":                                        true,
		"printf x | lockkeeper-hook codex":                                              true,
		"f() { lockkeeper \"$@\"; }; f off":                                             true,
		"lockkeeper lock exec --write a -- lockkeeper off":                              true,
		"git -c 'alias.x=!lockkeeper off 1h' x":                                         true,
		"python3 -c \"import subprocess; subprocess.run(['lockkeeper', 'off', '1h'])\"": true,
		"timeout 9 nice -n 5 lockkeeper off":                                            true,
		"lh codex":                                                                      true,
		"watch -n1 'lockkeeper off 1h'":                                                 true,
		"xargs grep x <<< lockkeeper":                                                   false,
		"lockkeeper status":                                                             false,
		"lockkeeper --dir \"$d\" status":                                                false,
		"lockkeeper why $f":                                                             false,
		"lockkeeper help off":                                                           false,
		"lockkeeper lock exec --write a.txt -- make off":                                false,
		"grep -r 'lockkeeper off' docs":                                                 false,
		"git commit -m 'lockkeeper off: say who'":                                       false,
		"python3 -c \"print('lockkeeper off')\"":                                        false,
	} {
		t.Run(command, func(t *testing.T) {
			if got := effectsOf(command, dir, env).Reserved; (got != "") != want {
				t.Errorf("reserved is %q", got)
			}
		})
	}
}

// shown formats a plan.
func shown(p Effects, dir string) string {
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
		list = append(list, "tree "+rel(f.Dir))
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

// No command text makes the reader panic or hang.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{"a > b", "for i in {1..3}; do git stash; done", "cat <<E\n$(rm x)\nE", "sed -i", "mv -t", "git -C", "env", "find -exec", "tee {1..100000000}{1..9}"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, command string) { effectsOf(command, dir, os.LookupEnv) })
}
