package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// survey lists what Survey finds, as "kind path" with the number of files of a directory.
func survey(t *testing.T, w *Workspace, wanted ...string) (list []string, found []Change) {
	t.Helper()
	found, err := w.Survey(t.Context(), wanted)
	must(t, err)
	for _, c := range found {
		line := string(c.Kind) + " " + c.Path
		if c.Whole {
			line += " whole"
		}
		list = append(list, line)
	}
	return list, found
}

// A new directory is one change, however many files an agent creates in it, and is taken out at
// once. A wanted file in it is reported and stays.
//
// shows: GP-5 SW-75
func TestSurveyOfManyFiles(t *testing.T) {
	root := newRepository(t)
	w := open(t, Options{Root: root})
	sh(t, w, `
		mkdir -p many/deep few; (cd many/deep; seq 1 2000 | xargs touch); echo 1 > few/one; echo x > app/models/user.rb
		mkdir many/wanted; echo w > many/wanted/file; chmod 0 many/deep`)
	list, found := survey(t, w)
	if want := []string{"modified app/models/user.rb", "created few/one", "created many whole"}; !slices.Equal(list, want) {
		t.Fatalf("%q, want %q", list, want)
	}
	if found[2].Files != 2001 {
		t.Errorf("%d files", found[2].Files)
	}
	list, _ = survey(t, w, "many/wanted/file", "many/wanted/other")
	if want := []string{"modified app/models/user.rb", "created few/one", "created many/deep whole", "created many/wanted/file"}; !slices.Equal(list, want) {
		t.Fatalf("%q, want %q", list, want)
	}
	taken, err := w.TakeOut(t.Context(), []string{"many/deep", "few/one"})
	must(t, err)
	if len(taken) != 2 || taken[1].File == "" {
		t.Errorf("%+v", taken)
	}
	wantChanges(t, w, "modified app/models/user.rb", "created many/wanted/file")
}

// If a path is too long, it is part of a directory that is taken out as a whole. Close removes
// that directory, too.
func TestPathTooLong(t *testing.T) {
	for name, depth := range map[string]string{"long": "60", "deep": "2000"} {
		t.Run(name, func(t *testing.T) {
			root := newRepository(t)
			w := open(t, Options{Root: root})
			cmd := exec.Command("python3", "-c", `import os,sys
n = 'd' * (200 if sys.argv[1] == '60' else 5)
for i in range(int(sys.argv[1])): os.mkdir(n); os.chdir(n)
open('f', 'w').write('x')`, depth)
			cmd.Dir = tree(t, w)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			list, found := survey(t, w)
			if len(list) != 1 || !found[0].Whole {
				t.Fatalf("%d changes: %q", len(list), list)
			}
			packed, err := w.Pack(t.Context(), found, 1<<20)
			must(t, err)
			if packed.Files != 0 || packed.Left != 1 {
				t.Errorf("%d files packed, %d left", packed.Files, packed.Left)
			}
			must(t, packed.Close())
			must(t, os.RemoveAll(filepath.Join(w.Home(), tempName)))
			takeAll(t, w)
			wantChanges(t, w)
			must(t, w.Close(t.Context(), false))
			if _, err := os.Stat(w.Home()); !os.IsNotExist(err) {
				t.Errorf("the workspace is left: %v", err)
			}
		})
	}
}

// Remove removes paths that are too long to name, and directories that the owner may not enter.
func TestRemove(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	must(t, os.Mkdir(dir, 0o700))
	dig(t, dir, 1000, "ten-bytes-", "file")
	must(t, os.Mkdir(filepath.Join(dir, "closed"), 0o700))
	write(t, dir, "closed/file", "x")
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0))
	must(t, os.Chmod(dir, 0))
	for range 2 {
		must(t, Remove(t.Context(), dir))
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("it is there: %v", err)
		}
	}
}

// Ignored files are recognized by the rules of the shared tree, and caches by their names.
func TestIgnored(t *testing.T) {
	root := newRepository(t)
	must(t, os.Mkdir(filepath.Join(root, "nested"), 0o755))
	git(t, root, "init", "-q", "-b", "main", "nested")
	plant(t, root, map[string]string{"nested/.gitignore": "*.tmp\n", "dist/source.js": "kept in git\n"})
	w := open(t, Options{Root: root})
	sh(t, w, `
		echo '*.rb' >> .gitignore; echo x > more.log; echo x > build/other; rm trace.log; echo x > brand.rb; echo x > nested/a.tmp; echo x > nested/a.log
		mkdir -p node_modules/a app/__pycache__; echo x > node_modules/a/b; echo x > app/__pycache__/c.pyc; echo x > dist/new.js
		mkdir big; (cd big; seq 1 200 | sed 's/$/.txt/' | xargs touch); mkdir build/big; (cd build/big; seq 1 200 | xargs touch)`)
	_, found := survey(t, w)
	ignored, err := w.Ignored(t.Context(), found)
	must(t, err)
	var got []string
	for i, c := range found {
		if ignored[i] {
			got = append(got, c.Path)
		}
	}
	want := []string{"app/__pycache__/c.pyc", "build/big", "build/other", "more.log", "nested/a.tmp", "node_modules/a/b", "trace.log"}
	if !slices.Equal(got, want) {
		t.Errorf("ignored are %q, not %q", got, want)
	}
}

// An archive contains all changes. Omitted files are counted.
func TestPack(t *testing.T) {
	w := open(t, Options{Root: newRepository(t)})
	sh(t, w, `echo changed > app/models/user.rb; rm app/run.sh; ln -s /etc/passwd link; truncate -s 1T sparse; mkfifo pipe
		mkdir -p many/sub; (cd many; seq 1 200 | xargs touch); echo deep > many/sub/file`)
	_, found := survey(t, w)
	packed, err := w.Pack(t.Context(), found, 1<<20)
	must(t, err)
	defer packed.Close()
	if packed.Files != 203 || packed.Left != 2 {
		t.Errorf("%d files, %d left", packed.Files, packed.Left)
	}
	to := t.TempDir()
	cmd := exec.Command("tar", "-xzf", "-", "-C", to)
	cmd.Stdin = packed.File
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if read(t, to, "app/models/user.rb") != "changed\n" || read(t, to, "many/sub/file") != "deep\n" || !strings.Contains(read(t, to, deletedName), "app/run.sh\n") {
		t.Error("not all is in the archive")
	}
}
