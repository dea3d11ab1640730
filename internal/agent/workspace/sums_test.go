package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// quickSums returns a cache that accepts files as soon as the disk's clock permits.
func quickSums() *Sums {
	s := NewSums()
	s.rest = grain
	return s
}

// waitOut waits until files just written can be cached.
func waitOut(t *testing.T, s *Sums) {
	t.Helper()
	time.Sleep(s.rest + 10*time.Millisecond) // files become older only by waiting
}

// A remembered hash matches the content of the file, however it was changed.
func TestSums(t *testing.T) {
	root := base(t)
	plant(t, root, map[string]string{"big": strings.Repeat("0123456789", 100_000), "zero": ""})
	sums := quickSums()
	waitOut(t, sums)
	check := func(what string) {
		t.Helper()
		for range 2 { // first by reading, then from the cache
			w := open(t, Options{Root: root, Sums: sums})
			same(t, what, contents(t, tree(t, w)), contents(t, root))
			w.base.each(".", func(_ string, n *node) { n.Young = true }) // so that every file is read
			wantChanges(t, w)
			must(t, w.Close(t.Context(), false))
		}
	}
	check("at first")
	if len(sums.known) != 8 {
		t.Errorf("%d files are remembered", len(sums.known))
	}
	for name, edit := range map[string]string{
		"rewritten":               "printf 'ten\\n' > a.rb",
		"with its time restored":  "touch -r a.rb ref; printf 'six\\n' > a.rb; touch -r ref a.rb; rm ref",
		"replaced":                "touch -r a.rb ref; printf 'two\\n' > t; touch -r ref t; mv t a.rb; rm ref",
		"exchanged":               "mv a.rb t; mv b.rb a.rb; mv t b.rb",
		"longer":                  "echo more >> big",
		"shorter":                 "truncate -s 1000 big",
		"with a hole":             "truncate -s 10000000 big",
		"in another inode's name": "rm a.rb; echo new > c.rb; mv c.rb a.rb",
	} {
		others(t, root, edit)
		check(name + " just now")
		waitOut(t, sums)
		check(name)
	}
}

// A file that changed recently is read again.
func TestSumsOfBusyFiles(t *testing.T) {
	onlyCopies(t, "it reads the tree of the copy itself")
	root := t.TempDir()
	for i := range 50 {
		write(t, root, fmt.Sprint(i), "x")
	}
	sums := NewSums()
	w := open(t, Options{Root: root, Sums: sums})
	if len(sums.known) > 0 {
		t.Errorf("%d files of just now are remembered", len(sums.known))
	}
	seen, err := statAt(w.tree, "1")
	must(t, err)
	sums.remember(seen, time.Unix(0, seen.changed).Add(time.Minute), [32]byte{1})
	if sum, known := sums.find(seen); !known || sum != [32]byte{1} {
		t.Error("a file that has rested is not remembered")
	}
	must(t, os.Chmod(filepath.Join(tree(t, w), "1"), 0o600))
	seen, err = statAt(w.tree, "1")
	must(t, err)
	if _, known := sums.find(seen); known {
		t.Error("a file that was touched is remembered")
	}
}
