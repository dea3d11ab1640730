package hook_test

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/session"
)

// persons creates the uncommitted files of a person in a newRepository, and returns them by path.
func persons(t *testing.T, s *stage) map[string]string {
	t.Helper()
	s.write("notes.txt", "my notes\n")
	s.write("notes two.txt", "more notes\n")
	s.write("todo.md", "- call\n")
	files := map[string]string{}
	for _, name := range []string{"notes.txt", "notes two.txt", "todo.md", "notes/plan.txt", user, ".env"} {
		files[name] = s.read(name)
	}
	return files
}

// tries makes a session run a command in a real shell, unless the hook refuses it.
func (s *stage) tries(session, command string) (before, after said) {
	s.t.Helper()
	if before = s.bash(session, "PreToolUse", command); before.code != 0 {
		return before, after
	}
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", command)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		s.t.Fatal(err)
	}
	after = s.printed(session, command, strings.TrimRight(string(out), "\n"))
	return before, after
}

// rescued lists the contents on the rescue shelf, by path.
func (s *stage) rescued() map[string][]string {
	s.t.Helper()
	a := s.open()
	list, err := session.Rescued(s.t.Context(), a)
	if err != nil {
		s.t.Fatal(err)
	}
	kept := map[string][]string{}
	for _, e := range list {
		if e.Sum == "" {
			continue
		}
		f, err := a.Shelf().Content(e.ID)
		if err != nil {
			s.t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if err := f.Close(); err != nil {
			s.t.Fatal(err)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		kept[e.Path] = append(kept[e.Path], string(content))
	}
	return kept
}

// contents returns the set of contents of all files in the tree.
func (s *stage) contents() map[string]bool {
	s.t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(s.dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			if e != nil && e.IsDir() && (e.Name() == ".git" || e.Name() == ".lockkeeper") {
				return fs.SkipDir
			}
			return err
		}
		content, err := os.ReadFile(file)
		all[string(content)] = true
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// Whatever command a session runs, a person's uncommitted content survives, is on the rescue
// shelf byte for byte, or the command is refused.
//
// shows: GP-5
func TestUncommittedSurvivesCommands(t *testing.T) {
	for _, command := range append(hidden(), []string{
		"find . -name 'notes*' -delete",
		"find . -name 'notes*' -type f -exec rm {} \\;",
		"find . -name '*.txt' -exec rm -f {} +",
		"find . -type f -name 'notes*' -print0 | xargs -0 rm",
		"find . -path './notes/*' -delete",
		"find . -size -1k -name '*.md' -delete; find . -newer lockkeeper.yaml -name 'n*' -delete",
		"ls *.txt | xargs -d '\\n' rm",
		"ls *.txt | xargs -d '\\n' -I{} rm {}",
		"ls | grep notes | xargs rm -rf",
		"rm $(ls *.md)",
		"rm -rf `ls -d notes`",
		"rm \"$(echo notes.txt)\"",
		"f=$(ls *.md); rm $f",
		"for f in $(ls *.md); do rm $f; done",
		"ls *.txt | while read -r f; do rm \"$f\"; done",
		"ls *.md | while read -r f; do : > $f; done",
		"cd $(pwd)/notes && rm plan.txt",
		"cd notes; cd - >/dev/null; rm todo.md",
		"eval \"rm $(echo notes.txt)\"",
		"bash -c \"$(echo rm notes.txt)\"",
		"echo 'rm notes.txt' | sh",
		"echo 'rm notes.txt' > run.sh; sh run.sh",
		"printf 'all:\\n\\trm -f notes.txt\\n' > Makefile; make",
		"python3 -c \"import glob,os; [os.remove(f) for f in glob.glob('*.txt')]\"",
		"python3 -c \"n='notes'; open(n+'.txt','w').write('x')\"",
		"python3 -c \"import shutil; shutil.rmtree('no'+'tes')\"",
		"perl -e 'unlink glob \"*.md\"'",
		"perl -ni -e '' notes.txt",
		"sed -i d notes.txt",
		"sed -i '1d' *.txt",
		"sed -n 'w notes.txt' " + post,
		"awk '{ print > \"notes.txt\" }' " + post,
		"mv notes.txt tmp && rm tmp",
		"mv notes tmp; rm -rf tmp",
		"mv notes.txt /dev/null 2>&1; mv todo.md notes.txt",
		"ln -s notes.txt alias; echo x > alias",
		"mkdir -p new && echo x > new/notes.txt && tar -C new -cf t.tar notes.txt && tar xf t.tar",
		"cp -f " + post + " notes.txt",
		"cp " + post + " $(echo notes.txt)",
		"echo x > notes.txt",
		"echo x > $(echo notes.txt)",
		"echo x | tee notes.txt",
		"echo x | tee $(echo notes.txt)",
		"dd if=/dev/null of=notes.txt",
		"truncate -s 0 notes.txt",
		"install " + post + " notes.txt",
		"rsync -a --delete app/ notes/ || rm -rf notes",
		"mkdir empty && rsync -a --delete empty/ . --exclude .git --exclude .lockkeeper || rm -f *.md",
		"git stash -u", "git stash --all", "git stash", "git checkout .", "git restore .", "git clean -fd", "git clean -fdx -e .lockkeeper", "git reset --hard",
		"git checkout-index -a -f", "git read-tree -u --reset HEAD",
		"git add -A && git stash && git stash drop",
		"git add -A && git reset --hard",
		"git -c alias.z='clean -fd' z",
		"sort -o notes.txt " + post,
		"uniq " + post + " notes.txt",
		"sed s/my/your/ notes.txt > t && mv t notes.txt",
		"shopt -s globstar; rm -f **/*.txt",
		"rm -f {notes,todo}.{txt,md}",
		"exec rm notes.txt",
		"trap 'rm notes.txt' EXIT",
		"x() { rm \"$1\"; }; x notes.txt",
		"time rm notes.txt", "timeout 5 rm notes.txt", "env A=1 rm notes.txt", "command rm notes.txt", "nohup rm notes.txt",
		"(sleep 0; rm notes.txt) & wait",
		"grep -l notes *.txt | xargs rm",
		"cat <<'E' | bash\nrm notes.txt\nE",
		"bash <<'E'\nrm notes.txt\nE",
		"bash <<E\nrm $(echo notes.txt)\nE",
		"true && unlink notes.txt || true",
		"shred -u notes.txt",
	}...) {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := newRepository(t)
			files := persons(t, s)
			before, after := s.tries("A", command)
			kept, there := s.rescued(), s.contents()
			for name, content := range files {
				if there[content] {
					continue // it is in place, or was moved
				}
				found := false
				for _, copied := range kept[name] {
					found = found || copied == content
				}
				if !found {
					t.Errorf("%s is lost\nbefore: %s\nafter: %s\nkept: %v", name, before.all(), after.all(), kept)
				} else if !strings.Contains(after.all(), name) || !strings.Contains(after.all(), "lockkeeper rescue restore ") {
					t.Errorf("%s was not told: %s", name, after.all())
				}
			}
		})
	}
}
