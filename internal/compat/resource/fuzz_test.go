package resource_test

import (
	"os"
	"path/filepath"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/project/config"
)

// Any tables and arguments give an error or valid locks.
func FuzzTables(f *testing.F) {
	for _, name := range resource.PresetNames() {
		p, err := resource.PresetOf(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p.Tables, "Chapter_05", "m1/s1", 101)
	}
	f.Add("resources:\n  A_{x}_{nn}: {files: ['{nn}/{x}']}\noperations:\n  op: {may_write: ['A_{x}_{nn}']}\n", "A_b_07", "p", 0)
	f.Fuzz(func(t *testing.T, text, name, id string, objects int) {
		path := filepath.Join(t.TempDir(), config.FileName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path, nil, nil)
		if err != nil {
			return
		}
		s, err := resource.Of(c)
		if err != nil {
			return
		}
		s.Covering(name)
		if r, err := s.Resolve(name); err == nil && r.Name != name {
			t.Errorf("%q is %q", name, r.Name)
		}
		for _, op := range s.Operations() {
			n, err := s.Operation(op.Name, resource.Args{Project: []string{"p"}, Map: []string{"m"}, Sketch: []string{id}, Objects: objects, Of: []string{name}})
			if err != nil {
				continue
			}
			for _, l := range n.Locks {
				if l.Kind >= lockkeeper.Node && l.Validate() != nil { // files are resolved before they are locked
					t.Errorf("%s: %v", op.Name, l.Validate())
				}
			}
		}
	})
}
