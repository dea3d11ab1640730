package escape

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// levels returns the levels that this user can test. Root also tests those of an ordinary user.
func levels() (list []level) {
	for _, root := range []bool{true, false} {
		if root && os.Geteuid() != 0 {
			continue
		}
		list = append(list, level{lacks: nothing, off: true, root: root})
		for _, lacks := range []string{nothing, landlock, namespaces} {
			list = append(list, level{lacks: lacks, root: root})
		}
	}
	return list
}

// An agent of a run cannot reach anything that it should not, by any known way.
func TestEscape(t *testing.T) {
	for _, l := range levels() {
		t.Run(l.String(), func(t *testing.T) {
			s := newScene(t, l)
			s.addAgent()
			before, home := s.tree(), s.home()
			said := s.run()
			text, err := os.ReadFile(filepath.Join(s.w.Root, reportFile))
			if err != nil {
				t.Fatalf("the agent did not report: %v\n%s\n%s", err, said, s.calls())
			}
			var r report
			must(t, json.Unmarshal(text, &r))
			if inNamespace := r.Parent == 1; inNamespace == (l.off || l.alone()) {
				t.Errorf("the agent was not confined as it should be: its parent is process %d\n%s", r.Parent, said)
			}
			judge(t, l, r)
			s.checkPlanted(home)
			if !l.off {
				s.compare(before, s.tree())
			}
		})
	}
}

// judge compares the results of the agent with the table.
func judge(t *testing.T, l level, r report) {
	t.Helper()
	tried := 0
	for _, a := range append(attempts(), attempt{name: inheritedRow, moot: always("the program hands none on")}) {
		if !a.applies(l) {
			continue
		}
		why, reported := r.Attempts[a.name]
		tried++
		open, moot := "", ""
		if a.open != nil && !l.off {
			open = a.open(l)
		}
		if a.moot != nil {
			moot = a.moot(l)
		}
		switch {
		case !reported:
			t.Errorf("%s: the agent did not try", a.name)
		case l.off && moot == "" && why != "":
			t.Errorf("%s: it fails outside of a sandbox, so it proves nothing: %s", a.name, why)
		case l.off && moot != "" && why == "":
			t.Errorf("%s: it succeeds outside of a sandbox; the table says that it does not: %s", a.name, moot)
		case l.off:
		case why == "" && open == "":
			t.Errorf("%s: it succeeded", a.name)
		case why != "" && open != "":
			t.Errorf("%s: it is held (%s); the table says that it is not: %s", a.name, why, open)
		}
	}
	if tried < 50 {
		t.Errorf("%d attempts are few", tried)
	}
	t.Logf("%d attempts", tried)
}

// tree returns the content of the shared tree, except the program's own files.
func (s *scene) tree() map[string]string {
	s.t.Helper()
	list := map[string]string{}
	must(s.t, filepath.WalkDir(s.w.Root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.w.Root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".lockkeeper", "tool", ".pipeline/+tasks"}, name) {
				return filepath.SkipDir
			}
			return nil
		}
		if name == ".pipeline/.lock" {
			return nil
		}
		if d.Type()&os.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			list[name] = "-> " + to
			return err
		}
		text, err := os.ReadFile(path)
		list[name] = string(text)
		return err
	}))
	return list
}

// compare reports changes of the shared tree that must not have landed.
func (s *scene) compare(before, after map[string]string) {
	s.t.Helper()
	mayChange := []string{reportFile, worldFile, coveredBy, privilegedFile}
	for path, text := range after {
		if path == ".pipeline/.gitignore" && text == "/.lock\n" {
			continue // the run made it
		}
		if was, there := before[path]; (!there || was != text) && !slices.Contains(mayChange, path) {
			s.t.Errorf("%q landed: %.100q instead of %.100q", path, text, was)
		}
		if path != worldFile && strings.Contains(text, s.w.Secret) {
			s.t.Errorf("%q has the secret in it", path)
		}
		if strings.HasPrefix(text, "-> ") {
			s.t.Errorf("%q is a link now: %s", path, text)
		}
	}
	for path := range before {
		if _, there := after[path]; !there {
			s.t.Errorf("%q is gone", path)
		}
	}
}
