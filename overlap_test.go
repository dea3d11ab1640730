package lockkeeper_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	lk "lockkeeper"
)

func target(path string, kind lk.Kind) lk.Target { return lk.Target{Path: path, Kind: kind} }

// shows: SW-16 SW-17
func TestConflictMatrix(t *testing.T) {
	modes := []lk.Mode{lk.Read, lk.Upgradeable, lk.Write}
	conflict := [3][3]bool{
		{false, false, true},
		{false, true, true},
		{true, true, true},
	}
	for i, held := range modes {
		for j, asked := range modes {
			want := conflict[i][j]
			if got := lk.Conflicts(held, asked); got != want {
				t.Errorf("%v held, %v asked: conflict %v, want %v", held, asked, got, want)
			}
			if got := lk.ConflictMask(asked)&(1<<held) != 0; got != want {
				t.Errorf("mask of %v has %v: %v, want %v", asked, held, got, want)
			}
			a := lk.Lock{Target: target("app/a.rb", lk.File), Mode: held}
			same := lk.Lock{Target: target("app/a.rb", lk.File), Mode: asked}
			apart := lk.Lock{Target: target("app/b.rb", lk.File), Mode: asked}
			if a.Conflicts(same) != want || a.Conflicts(apart) {
				t.Errorf("%v and %v: %v on one file, %v on two; want %v and false", held, asked, a.Conflicts(same), a.Conflicts(apart), want)
			}
		}
	}
}

// shows: SW-14 SW-18 GP-1
func TestOverlapTable(t *testing.T) {
	for _, row := range []struct {
		a, b lk.Target
		want bool
	}{
		{target("a.rb", lk.File), target("a.rb", lk.File), true},
		{target("a.rb", lk.File), target("b.rb", lk.File), false},
		{target("app", lk.Dir), target("app/a.rb", lk.File), true},
		{target("app/views", lk.Dir), target("app/views/a/b.erb", lk.File), true},
		{target("app/views", lk.Dir), target("app/views_old/x", lk.File), false},
		{target("app/views", lk.Dir), target("app/views.rb", lk.File), false},
		{target("app", lk.Dir), target("lib/a.rb", lk.File), false},
		{target("app", lk.Dir), target("app", lk.Dir), true},
		{target("app", lk.Dir), target("app/models", lk.Dir), true},
		{target("app/views", lk.Dir), target("app/models", lk.Dir), false},
		{target("app/new", lk.File), target("app/new/x.rb", lk.File), true},
		{target(lk.Root, lk.Dir), target("a.rb", lk.File), true},
		{target(lk.Root, lk.Dir), target(lk.Root, lk.Dir), true},
		{target(lk.Root, lk.Dir), target(lk.GitTarget, lk.File), true},
		{target(lk.GitTarget, lk.File), target(".github", lk.File), false},
		{target("project/p1", lk.Node), target("project/p1/map/m2", lk.Node), false},
		{target("project/p1", lk.Tree), target("project/p1/map/m2", lk.Node), true},
		{target("project/p1", lk.Node), target("project/p1", lk.Tree), true},
		{target("project/p1", lk.Tree), target("project/p10", lk.Node), false},
		{target("project/p1", lk.Node), target("project/p1/map/m2", lk.Tree), false},
	} {
		if row.a.Overlaps(row.b) != row.want || row.b.Overlaps(row.a) != row.want {
			t.Errorf("%v %v and %v %v: overlap %v and %v, want %v", row.a.Kind, row.a.Path, row.b.Kind, row.b.Path,
				row.a.Overlaps(row.b), row.b.Overlaps(row.a), row.want)
		}
	}
}

// covers applies the overlap rule to lists of segments.
func covers(a, b lk.Target) bool {
	split := func(path string) []string {
		if path == lk.Root {
			return nil
		}
		return strings.Split(path, "/")
	}
	above, below := split(a.Path), split(b.Path)
	if len(above) > len(below) || !slices.Equal(above, below[:len(above)]) {
		return false
	}
	return len(above) == len(below) || a.Kind != lk.Node
}

// shows: SW-18 GP-1
// ValidateAll agrees with Validate for every lock of a list, including siblings.
func TestValidateAllAgrees(t *testing.T) {
	dirs := []string{"", "a/", "a/b/", "é/", "./", "../", "a//", "/", "a/./"}
	names := []string{"x", "x.rb", ".x", "..", ".", "", "é", "a\x00b", "\xff", "x/", "y/z", "0"}
	for _, d := range dirs {
		for _, e := range dirs {
			for _, n := range names {
				for _, m := range names {
					list := []lk.Lock{}
					want := true
					for _, p := range []string{d + n, e + m, d + m} {
						l := lk.Lock{Target: lk.Target{Path: p, Kind: lk.File}, Mode: lk.Write}
						list = append(list, l)
						want = want && l.Validate() == nil
					}
					if got := lk.ValidateAll(list) == nil; got != want {
						t.Fatalf("%q: valid %v, want %v", list, got, want)
					}
				}
			}
		}
	}
	for _, l := range []lk.Lock{{Target: target("a/c", 9), Mode: lk.Write}, {Target: target("a/c", lk.File), Mode: 9}, {Target: target("a/c", 0), Mode: lk.Write}} {
		if lk.ValidateAll([]lk.Lock{{Target: target("a/b", lk.File), Mode: lk.Write}, l}) == nil {
			t.Errorf("%v is valid beside another", l)
		}
	}
}

func FuzzOverlap(f *testing.F) {
	for _, seed := range [][2]string{{"a", "a"}, {"a", "a/b"}, {"a/b", "ab"}, {"a", "a.b"}, {".", "a"}, {"a/b/c", "a/b0"}, {"\u00e9", "\u00e9/x"}} {
		for kinds := range byte(16) {
			f.Add(seed[0], seed[1], kinds)
		}
	}
	f.Fuzz(func(t *testing.T, p, q string, kinds byte) {
		a, b := target(p, lk.Kind(kinds&3)+lk.File), target(q, lk.Kind(kinds>>2&3)+lk.File)
		if a.Validate() != nil || b.Validate() != nil {
			return
		}
		want := covers(a, b) || covers(b, a)
		if a.Overlaps(b) != want || b.Overlaps(a) != want {
			t.Fatalf("%v and %v: overlap %v and %v, want %v", a, b, a.Overlaps(b), b.Overlaps(a), want)
		}
		below := covers(target(p, lk.Dir), b) && p != q
		if lk.IsAncestor(p, q) != below {
			t.Fatalf("IsAncestor(%q, %q) = %v", p, q, !below)
		}
		if lo, hi := lk.Range(p); (lo < q && q < hi && q != lk.Root) != below {
			t.Fatalf("Range(%q) = %q, %q and %q", p, lo, hi, q)
		}
		ancestor := false
		for up, ok := lk.Parent(q); ok; up, ok = lk.Parent(up) {
			ancestor = ancestor || up == p
		}
		if ancestor != below {
			t.Fatalf("%q among the parents of %q: %v", p, q, ancestor)
		}
		if a.Compare(b) != -b.Compare(a) || a.Compare(b) == 0 && p != q {
			t.Fatalf("Compare of %v and %v is no order", a, b)
		}
	})
}

// shows: GP-1
func TestAncestorsAndRange(t *testing.T) {
	paths := []string{"app", "app/views", "app/views/a/b.erb", "app/views0", "app/views-old", "app/views.rb", "app/views_old/x", "b", "\u00e9", "\U0010FFFEx"}
	below := map[string][]string{
		"app/views": {"app/views/a/b.erb"},
		"app":       paths[1:7],
		lk.Root:     paths,
		"b":         nil,
	}
	for dir, want := range below {
		lo, hi := lk.Range(dir)
		var ancestors, ranged []string
		for _, p := range paths {
			if lk.IsAncestor(dir, p) {
				ancestors = append(ancestors, p)
			}
			if lo < p && p < hi {
				ranged = append(ranged, p)
			}
		}
		if !slices.Equal(ancestors, want) || !slices.Equal(ranged, want) {
			t.Errorf("below %s: by segment %q, by range %q, want %q", dir, ancestors, ranged, want)
		}
	}
	if lk.IsAncestor(lk.Root, lk.Root) || lk.IsAncestor("app", lk.Root) {
		t.Error("the root lies below something")
	}
}

// shows: GP-6
func TestNormalize(t *testing.T) {
	lock := func(path string, kind lk.Kind, mode lk.Mode) lk.Lock {
		return lk.Lock{Target: target(path, kind), Mode: mode}
	}
	want := []lk.Lock{
		lock("a.rb", lk.File, lk.Write), lock("b.rb", lk.File, lk.Upgradeable), lock("d", lk.Dir, lk.Read),
		lock("d/x", lk.File, lk.Write), lock("p/1", lk.Tree, lk.Write), lock("p/2", lk.Node, lk.Read),
	}
	asked := []lk.Lock{
		lock("a.rb", lk.File, lk.Read), lock("a.rb", lk.File, lk.Write), lock("b.rb", lk.File, lk.Upgradeable), lock("b.rb", lk.File, lk.Read),
		lock("d", lk.File, lk.Read), lock("d", lk.Dir, lk.Read), lock("d/x", lk.File, lk.Write),
		lock("p/1", lk.Node, lk.Write), lock("p/1", lk.Tree, lk.Read), lock("p/2", lk.Node, lk.Read), lock("p/2", lk.Node, lk.Read),
	}
	for seed := range uint64(50) {
		shuffled := slices.Clone(asked)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		before := slices.Clone(shuffled)
		if got := lk.Normalize(shuffled); !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
		if !slices.Equal(shuffled, before) {
			t.Fatalf("seed %d: the caller's locks were changed", seed)
		}
	}
	if got := lk.Normalize(want); &got[0] != &want[0] {
		t.Error("locks in normal form were copied")
	}
	if got := lk.Normalize(nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// shows: DL-70
func TestCompareIsTheGlobalOrder(t *testing.T) {
	want := []lk.Target{
		target("app", lk.Dir), target("lib/a.rb", lk.File), target("zoo", lk.File),
		target("project/p1", lk.Node), target("project/p2", lk.Tree),
		target("project/p2/map/m1", lk.Node), target("project/p1/map/m2", lk.Tree), target("project/p2/map/m2", lk.Node),
		target("project/p9/map/m9/sketch/s1", lk.Node), target("project/p1/map/m1/sketch/s2", lk.Node),
	}
	for seed := range uint64(50) {
		got := slices.Clone(want)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, lk.Target.Compare)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, path := range []string{".", "a", "a/b", ".git", "..a", "a..", "...", "a b", "\u00e9/x", "a\n", strings.Repeat("a", lk.MaxPathSize), "a/\U0010FFFF"} {
		if err := target(path, lk.File).Validate(); err != nil {
			t.Errorf("%.20q: %v", path, err)
		}
	}
	for path, reason := range map[string]string{
		"": "empty", "/a": "absolute", "a/": "normalized", "a//b": "normalized", "./a": "normalized", "a/.": "normalized",
		"..": "..", "a/../b": "..", "a/..": "..", "a\x00": "NUL", "\xff": "UTF-8", "a/\xc3": "UTF-8", "\U0010FFFF": "noncharacter",
		strings.Repeat("a", lk.MaxPathSize+1): "4097 bytes",
	} {
		err := target(path, lk.File).Validate()
		if lk.CodeOf(err) != lk.CodeInput || !strings.Contains(err.Error(), reason) {
			t.Errorf("%.20q: %v, want an input error about %q", path, err, reason)
		}
	}
	for _, kind := range []lk.Kind{0, lk.Tree + 1} {
		if err := target("a", kind).Validate(); lk.CodeOf(err) != lk.CodeInput {
			t.Errorf("%v: %v", kind, err)
		}
	}
}
