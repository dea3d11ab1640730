package acts_test

import (
	"os"
	"path/filepath"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/acts"
)

// A pattern is no name of a file, unless a file or a directory has this name. A new file may be called [id].tsx.
func TestPatternsAreNoNames(t *testing.T) {
	a := projecttest.Empty(t, "gate: {allowed_write_paths: [.]}\n").Open(t)
	for _, path := range []string{"src/a.py", "src/is*.py", "app/[id]/page.tsx", "odd*/x"} {
		at := filepath.Join(a.Root.Dir(), path)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.WriteFile(at, nil, 0o644))
	}
	for _, path := range []string{"src/a.py", "src/new.py", "src/is*.py", "app/[id]/page.tsx", "app/[id]/new.tsx", "src/[id].tsx", "src/a[1", "odd*/new", "src/", "src/{a,b}.py", filepath.Join(a.Root.Dir(), "src/is*.py")} {
		if err := acts.CheckName(a, path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"*", "src/*.py", "**/*.py", "none/*", "src/?.py", "src/[abc].py", "app/[id]/*.tsx", filepath.Join(a.Root.Dir(), "*")} {
		if err := acts.CheckName(a, path); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s: %v", path, err)
		}
	}
}
