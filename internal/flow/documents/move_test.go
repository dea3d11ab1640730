package documents

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// former copies documents as an earlier version stored them.
func former(t *testing.T) (units, screens *Store) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS("testdata/former")))
	return Open(filepath.Join(dir, ".pipeline")), Open(filepath.Join(dir, ".analysis"))
}

func mustRead(t *testing.T, f *Folder, name string) string {
	t.Helper()
	doc, err := f.Read(t.Context(), name, nil)
	must(t, err)
	if doc == nil {
		t.Fatalf("%s is missing from %s", name, f.Dir())
	}
	return filepath.Dir(doc.Path)
}

// Documents of an earlier version are found where they are, and again where Move moves them.
// shows: PL-59 PL-60 SW-5
func TestFormerFoldersAreFoundAndMoved(t *testing.T) {
	units, screens := former(t)
	posts, task := units.Unit("blog/posts"), units.Unit("+tasks").Batch("Fresh-Session")
	list := screens.Screen("blog/posts", "Post List", "blog", "posts", "Post List")
	look := func(wantPosts, wantTask, wantList string) {
		t.Helper()
		names, odd, err := units.Units(t.Context())
		must(t, err)
		if !slices.Equal(names, []string{"+tasks", "blog/posts"}) || odd != nil {
			t.Errorf("got %q and %q", names, odd)
		}
		for _, at := range []struct{ is, want string }{{mustRead(t, posts, "analysis.json"), wantPosts}, {mustRead(t, task, "started.json"), wantTask}, {mustRead(t, list, "analysis.json"), wantList}} {
			if at.is != at.want {
				t.Errorf("it is in %s, not in %s", at.is, at.want)
			}
		}
	}
	look("blog%2Fposts", "+tasks/batches/%46resh-%53ession", "blog/posts/%50ost%20%4Cist")
	must(t, os.MkdirAll(filepath.Join(units.Dir(), "blog"), 0o755)) // what a crash leaves before the rename
	_, err := posts.Write(t.Context(), "extract.json", result{}, About{})
	must(t, err)
	look("blog%2Fposts", "+tasks/batches/%46resh-%53ession", "blog/posts/%50ost%20%4Cist")
	for range 2 {
		must(t, units.Move(t.Context()))
		must(t, list.Move(t.Context()))
		look("blog/posts", "+tasks/batches/Fresh-Session~x", "blog/posts/Post List")
		mustRead(t, posts, "extract.json")
	}
	for _, gone := range []string{"blog%2Fposts", "+tasks/batches/%46resh-%53ession"} {
		if _, err := os.Lstat(filepath.Join(units.Dir(), gone)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", gone, err)
		}
	}
}

// A screen without a module had a folder for the empty name, which is removed with it.
func TestFormerFolderWithoutAModule(t *testing.T) {
	_, screens := former(t)
	must(t, os.Rename(filepath.Join(screens.Dir(), "blog"), filepath.Join(screens.Dir(), "%")))
	list := screens.Screen("posts", "Post List", "", "posts", "Post List")
	if at := mustRead(t, list, "analysis.json"); at != "%/posts/%50ost%20%4Cist" {
		t.Errorf("it is in %s", at)
	}
	must(t, list.Move(t.Context()))
	if at := mustRead(t, list, "analysis.json"); at != "posts/Post List" {
		t.Errorf("it is in %s", at)
	}
	if _, err := os.Lstat(filepath.Join(screens.Dir(), "%")); !os.IsNotExist(err) {
		t.Errorf("a directory without documents is left: %v", err)
	}
}

// A folder stays if another unit is below its new name, and new documents win over former ones.
func TestFormerFolderStays(t *testing.T) {
	units, _ := former(t)
	_, err := units.Unit("blog/posts/archive").Write(t.Context(), "analysis.json", result{}, About{})
	must(t, err)
	must(t, units.Move(t.Context()))
	posts := units.Unit("blog/posts")
	if at := mustRead(t, posts, "analysis.json"); at != "blog%2Fposts" {
		t.Errorf("it is in %s", at)
	}
	mustRead(t, units.Unit("blog/posts/archive"), "analysis.json")
	must(t, os.WriteFile(filepath.Join(units.Dir(), "blog/posts/analysis.json"), []byte("{}"), 0o644))
	must(t, units.Move(t.Context()))
	if at := mustRead(t, posts, "analysis.json"); at != "blog/posts" {
		t.Errorf("it is in %s", at)
	}
	if _, err := os.Lstat(filepath.Join(units.Dir(), "blog%2Fposts/analysis.json")); err != nil {
		t.Errorf("a document is lost: %v", err)
	}
}

// A reader finds a document at every moment of a move.
func TestReadersDuringAMove(t *testing.T) {
	for range 20 {
		units, _ := former(t)
		posts, moved := units.Unit("blog/posts"), make(chan struct{})
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for {
					if doc, err := posts.Read(t.Context(), "analysis.json", nil); err != nil || doc == nil {
						t.Errorf("got %v, %v", doc, err)
						return
					}
					select {
					case <-moved:
						return
					default:
					}
				}
			})
		}
		must(t, units.Move(t.Context()))
		close(moved)
		readers.Wait()
	}
}
