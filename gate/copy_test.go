package gate_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/gate"
)

// A clone on another machine is told where it is behind what was landed, until it has
// caught up.
//
// shows: DL-78 DL-79
func TestCopyThatIsBehind(t *testing.T) {
	w := newWorld(t, map[string]string{"test/a": "old", "test/b": "old", "test/gone": "old"}, gate.Options{Site: "otter.example:/src"})
	clone := &world{t: t, dir: filepath.Join(t.TempDir(), "clone"), store: w.store}
	must(t, os.CopyFS(clone.dir, os.DirFS(w.dir)))
	clone.open(gate.Options{})
	all := []string{"test/a", "test/b", "test/gone", "test/new"}
	must(t, clone.gate.CheckCopy(t.Context(), all...))

	g := w.hold("otter", all...)
	l := w.commit(g, gate.Put("test/a", []byte("new")), gate.Delete("test/gone"), gate.Put("test/new", []byte("new")))
	must(t, w.gate.CheckCopy(t.Context(), all...)) // which has them
	err := clone.gate.CheckCopy(t.Context(), all...)
	for _, path := range []string{"test/a", "test/gone", "test/new"} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("the clone is not told of %s: %v", path, err)
		}
	}
	var behind *lockkeeper.BehindError
	if !errors.As(err, &behind) || behind.Landing != l.Seq || behind.Site != "otter.example:/src" || strings.Contains(err.Error(), "test/b") {
		t.Errorf("the clone is told %v", err)
	}
	clone.plant(map[string]string{"test/a": "new", "test/new": "new"})
	must(t, os.Remove(filepath.Join(clone.dir, "test/gone")))
	must(t, clone.gate.CheckCopy(t.Context(), all...))
}
