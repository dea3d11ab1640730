package toolcache

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A layer is removed together with the layers below it, because its index may name files in them.
func TestLayerWithoutTheOneBelow(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "store"), 100)
	if err := add(t, s, "content", strings.Repeat("x", 40)); err != nil {
		t.Fatal(err)
	}
	if err := add(t, s, "index", strings.Repeat("x", 70)); err != nil { // the store is half empty, so the command saw content
		t.Fatal(err)
	}
	if got := content(t, s); slices.Equal(got, []string{"index"}) {
		t.Errorf("only %q stays", got)
	}
}
