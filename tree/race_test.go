package tree

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockkeeper"
)

// Another process keeps swapping a directory, a link out of the root, a link into
// it, a file and nothing. The walk returns a target that was valid at some moment, or
// refuses.
func TestSwappedWhileResolving(t *testing.T) {
	r := plant(t, "real/x.rb", "other/x.rb", "d/")
	spot := filepath.Join(r.Dir(), "d", "spot")
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			os.RemoveAll(spot)
			switch i % 5 {
			case 0:
				os.Mkdir(spot, 0o700)
			case 1:
				os.Symlink("/etc", spot)
			case 2:
				os.Symlink("../other", spot)
			case 3:
				os.WriteFile(spot, nil, 0o600)
			}
		}
	})
	allowed := map[string]bool{"d/spot/x.rb": true, "other/x.rb": true}
	seen := map[string]int{}
	for began, n := time.Now(), 0; (n < 20_000 || len(seen) < 3) && time.Since(began) < 5*time.Minute; n++ {
		lock, err := r.Resolve("", "d/spot/x.rb", read)
		switch {
		case err == nil && !allowed[lock.Path]:
			t.Fatalf("resolved to %s", lock.Path)
		case err == nil:
			seen[lock.Path]++
		case lockkeeper.CodeOf(err) != lockkeeper.CodeInput:
			t.Fatal(err)
		default:
			seen["refused"]++
		}
	}
	stop.Store(true)
	wg.Wait()
	if len(seen) < 3 {
		t.Errorf("the swaps had no effect: %v", seen)
	}
}

// FuzzResolve checks the invariants of the package for any spelling in a tree
// with all kinds of difficult names.
func FuzzResolve(f *testing.F) {
	r := plant(f, "a/b/c.rb", "in -> a/b", "abs -> $ROOT/a", "out -> ../..", "etc -> /etc", "loop -> loop", "dang -> x/y",
		"up/link -> ../in/../b", ".git/config", ".lockkeeper/state", "Up/Case", "a/top -> ../.")
	fold := open(f, r.Dir())
	fold.folds = func(int) (bool, error) { return true, nil }
	for _, seed := range []string{"a/b/c.rb", "in/c.rb", "abs/b/", "out/x", "etc/hosts", "loop", "dang", "up/link", ".git", ".git/x",
		".", "..", "//a", "$/a/b", "a/top/a/top/in", "Up/Case", "N\u00c9W/e\u0301", "a\x00", "\xff", "a/b/c.rb/"} {
		f.Add(seed, byte(3), "/a")
	}
	f.Fuzz(func(t *testing.T, spelling string, mode byte, base string) {
		if rest, ok := strings.CutPrefix(spelling, "$"); ok {
			spelling = r.Dir() + rest
		}
		for _, r := range []*Root{r, fold} {
			lock, err := r.Resolve(r.Dir()+base, spelling, lockkeeper.Mode(mode))
			if err != nil {
				continue
			}
			if err := lock.Validate(); err != nil {
				t.Fatalf("%q: %v", spelling, err)
			}
			again := lock.Path
			if lock.Kind == lockkeeper.Dir {
				again += "/"
			}
			for _, again := range []string{again, r.Dir() + "/" + again} {
				if twice, err := r.Resolve("", again, lock.Mode); err != nil || twice != lock {
					t.Fatalf("%q gave %v %v, and that gave %v %v, %v", spelling, lock.Kind, lock, twice.Kind, twice, err)
				}
			}
			// The kernel's result is in the root, too.
			real, err := filepath.EvalSymlinks(filepath.Join(r.Dir(), lock.Path))
			if err == nil && real != filepath.Join(r.Dir(), lock.Path) {
				t.Fatalf("%q gave %v, which is really %s", spelling, lock, real)
			}
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	r := plant(b, "app/models/concerns/user.rb", "link -> app/models")
	for name, spelling := range map[string]string{
		"relative": "app/models/concerns/user.rb", "new": "app/models/new/user.rb", "upper": "app/models/concerns/User.rb",
		"link": "link/concerns/user.rb", "absolute": r.Dir() + "/app/models/concerns/user.rb",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Resolve("", spelling, read); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("base", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Resolve(r.Dir()+"/app", "models/concerns/user.rb", read); err != nil {
				b.Fatal(err)
			}
		}
	})
}
