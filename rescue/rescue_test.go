package rescue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/durable/durabletest"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 123e6, time.UTC)

// shelf returns a shelf without entries.
func shelf(t *testing.T) (*Shelf, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "rescue")
	return Open(dir, Limits{}), dir
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// keep puts an entry whose content is its path.
func keep(t *testing.T, s *Shelf, path string, at time.Time) Entry {
	t.Helper()
	return must[Entry](t)(s.Put(t.Context(), Entry{At: at, Kind: Gap, Path: path}, strings.NewReader(path)))
}

func list(t *testing.T, s *Shelf) []Entry {
	t.Helper()
	return must[[]Entry](t)(s.List(t.Context()))
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir(dir)) {
		names = append(names, e.Name())
	}
	return names
}

func contentOf(t *testing.T, s *Shelf, id string) string {
	t.Helper()
	f := must[*os.File](t)(s.Content(id))
	defer f.Close()
	return string(must[[]byte](t)(io.ReadAll(f)))
}

func refused(t *testing.T, what string, err error) {
	t.Helper()
	var input *lockkeeper.InputError
	if !errors.As(err, &input) || !strings.Contains(input.Next, "`lockkeeper rescue list`") {
		t.Errorf("%s: %v, want an InputError that names the list", what, err)
	}
}

func TestPutAndGet(t *testing.T) {
	s, dir := shelf(t)
	if got := list(t, s); got != nil {
		t.Errorf("an empty shelf lists %v", got)
	}
	if n, err := s.Prune(noon); n != 0 || err != nil {
		t.Errorf("pruned an empty shelf: %d, %v", n, err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made before it was needed: %v", err)
	}
	given := Entry{ID: "ignored", At: noon, Kind: Displaced, Path: "app/models/user.rb", GrantID: "g1", Holder: "otter", Reason: "not covered",
		Base: lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sha256.Sum256([]byte("before"))}, Mode: 0o755, Size: 99, Sum: "ignored"}
	put := must[Entry](t)(s.Put(t.Context(), given, strings.NewReader("class User\n")))
	sum := sha256.Sum256([]byte("class User\n"))
	want := given
	want.ID, want.Size, want.Sum = put.ID, 11, hex.EncodeToString(sum[:])
	if !reflect.DeepEqual(put, want) || !strings.HasPrefix(put.ID, "20261115T120000.123-") {
		t.Errorf("put %+v, want %+v", put, want)
	}
	if got := must[Entry](t)(s.Get(put.ID)); !reflect.DeepEqual(got, put) {
		t.Errorf("got %+v, want %+v", got, put)
	}
	if got := contentOf(t, s, put.ID); got != "class User\n" {
		t.Errorf("content %q", got)
	}
	for path, mode := range map[string]fs.FileMode{"": fs.ModeDir | 0o700, put.ID: fs.ModeDir | 0o700, put.ID + "/meta.json": 0o600, put.ID + "/content": 0o600} {
		if info := must[fs.FileInfo](t)(os.Lstat(filepath.Join(dir, path))); info.Mode() != mode {
			t.Errorf("%q has mode %v, want %v", path, info.Mode(), mode)
		}
	}
	var meta map[string]any
	if err := json.Unmarshal(must[[]byte](t)(os.ReadFile(filepath.Join(dir, put.ID, "meta.json"))), &meta); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"id", "at", "kind", "path", "grant_id", "holder", "reason", "base", "mode", "size", "sum"} {
		if meta[key] == nil {
			t.Errorf("meta.json has no %s: %v", key, meta)
		}
	}
}

func TestChangesWithoutContent(t *testing.T) {
	s, dir := shelf(t)
	for _, e := range []Entry{{Kind: Gap, Path: "a", Delete: true}, {Kind: Gap, Path: "a", Mode: 0o755}} {
		before := time.Now()
		var content io.Reader
		if e.Delete {
			content = strings.NewReader("not read")
		}
		put := must[Entry](t)(s.Put(t.Context(), e, content))
		if put.At.Sub(before).Abs() > time.Hour || put.Sum != "" || put.Size != 0 { // the machine's clock may be set meanwhile
			t.Errorf("%+v", put)
		}
		if got := names(t, filepath.Join(dir, put.ID)); !slices.Equal(got, []string{"meta.json"}) {
			t.Errorf("kept %v", got)
		}
		if got := must[Entry](t)(s.Get(put.ID)); !reflect.DeepEqual(got, put) {
			t.Errorf("got %+v, want %+v", got, put)
		}
		_, err := s.Content(put.ID)
		refused(t, "content", err)
	}
	empty := must[Entry](t)(s.Put(t.Context(), Entry{Kind: Gap, Path: "empty"}, strings.NewReader("")))
	if contentOf(t, s, empty.ID) != "" || empty.Sum == "" {
		t.Errorf("empty content is missing: %+v", empty)
	}
}

func TestOldestFirst(t *testing.T) {
	s, dir := shelf(t)
	for _, minute := range []int{3, 1, 2, 0} {
		keep(t, s, fmt.Sprint(minute), noon.Add(time.Duration(minute)*time.Minute))
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, e := range list(t, s) {
		if e.Path != fmt.Sprint(i) {
			t.Errorf("%d: %+v", i, e)
		}
	}
	if n, err := s.Prune(noon.Add(2 * time.Minute)); n != 2 || err != nil {
		t.Errorf("pruned %d, %v", n, err)
	}
	if left := list(t, s); len(left) != 2 || left[0].Path != "2" {
		t.Errorf("left %v", left)
	}
	if got := names(t, dir); len(got) != 3 || got[2] != "README" {
		t.Errorf("the directory holds %v", got)
	}
}

// An id never leads to anything but an entry.
func TestHostileIDs(t *testing.T) {
	s, dir := shelf(t)
	kept := keep(t, s, "a", noon)
	must[Entry](t)(Open(filepath.Join(filepath.Dir(dir), "x"), Limits{}).Put(t.Context(), Entry{}, nil))
	for _, id := range []string{"", ".", "..", "../x", "../x/" + kept.ID, "/etc", kept.ID + "/", kept.ID + "/content", "./" + kept.ID,
		kept.ID + "\x00", kept.ID[:27], kept.ID + "0", strings.ToLower(kept.ID), durable.TempPrefix + kept.ID, strings.Replace(kept.ID, ".", ",", 1),
		"20261315T120000.123-00000000", "20261115T120000.123-../../x", "20261115T120000.123-0000000/", "20261115T120000.123-00000000"} {
		_, get := s.Get(id)
		refused(t, "get "+id, get)
		_, content := s.Content(id)
		refused(t, "content "+id, content)
		refused(t, "drop "+id, s.Drop(id))
	}
	if len(list(t, s)) != 1 || len(names(t, filepath.Join(filepath.Dir(dir), "x"))) != 1 {
		t.Error("something was dropped")
	}
}

// A path is any text, and it is returned unchanged.
func TestHostilePaths(t *testing.T) {
	s, dir := shelf(t)
	paths := []string{"../../../etc/passwd", "/etc/passwd", "a\x00b", "a\nb", strings.Repeat("x/", 4000), `"},{"`, "..", "", "<script>", "\u202e"}
	for i, path := range paths {
		put := keep(t, s, path, noon.Add(time.Duration(i)*time.Second))
		if got := must[Entry](t)(s.Get(put.ID)); got.Path != path {
			t.Errorf("%q came back as %q", path, got.Path)
		}
	}
	var files []string
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, d.Name())
		}
		return err
	})
	if err != nil || len(files) != 2*len(paths) {
		t.Errorf("%d files, %v: %v", len(files), err, files)
	}
	_, err = s.Put(t.Context(), Entry{Path: strings.Repeat("x", maxMeta)}, nil)
	var input *lockkeeper.InputError
	if !errors.As(err, &input) || len(names(t, dir)) != len(paths) {
		t.Errorf("a path of %d bytes: %.100v", maxMeta, err)
	}
	for _, year := range []int{-1, 12026} {
		if _, err := s.Put(t.Context(), Entry{At: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}, nil); !errors.As(err, &input) {
			t.Errorf("year %d: %v", year, err)
		}
	}
}

// A shelf, entry or file that is a link is not followed, and dropping one leaves its target
// unchanged.
func TestLinksAreNotFollowed(t *testing.T) {
	s, dir := shelf(t)
	elsewhere, there := shelf(t)
	other := keep(t, elsewhere, "secret", noon)
	if err := os.Symlink(there, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), Entry{Path: "a"}, strings.NewReader("a")); err == nil {
		t.Error("put through a link")
	}
	if got, err := s.List(t.Context()); err == nil {
		t.Errorf("listed through a link: %v", got)
	}
	if n, err := s.Prune(noon.Add(time.Hour)); err == nil || n != 0 {
		t.Errorf("pruned through a link: %d, %v", n, err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	kept := keep(t, s, "a", noon)
	content, link := filepath.Join(dir, kept.ID, "content"), "20261115T130000.000-00000000"
	err := errors.Join(os.Remove(content), os.Symlink(filepath.Join(there, other.ID, "content"), content),
		os.Symlink(filepath.Join(there, other.ID), filepath.Join(dir, link)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list(t, s) {
		if e.Kind != Damaged || !strings.Contains(e.Reason, "too many levels of symbolic links") {
			t.Errorf("%+v", e)
		}
		_, err := s.Content(e.ID)
		refused(t, "content of a link", err)
		if err := s.Drop(e.ID); err != nil {
			t.Error(err)
		}
	}
	if got := names(t, dir); got != nil {
		t.Errorf("left %v", got)
	}
	if contentOf(t, elsewhere, other.ID) != "secret" {
		t.Error("what the link led to changed")
	}
}

func TestDamagedEntriesAreShown(t *testing.T) {
	s, dir := shelf(t)
	damage := map[string]func(path string) error{
		"meta.json: no such file": func(p string) error { return os.Remove(p + "/meta.json") },
		"unexpected end of JSON":  func(p string) error { return os.Truncate(p+"/meta.json", 10) },
		"not a kind":              func(p string) error { return os.WriteFile(p+"/meta.json", []byte(`{"base":"x y z"}`), 0o600) },
		"another entry":           func(p string) error { return os.WriteFile(p+"/meta.json", []byte(`{"id":"../x"}`), 0o600) },
		"exceeded max depth":      func(p string) error { return os.WriteFile(p+"/meta.json", bytes.Repeat([]byte("["), maxMeta*2), 0o600) },
		"content: no such file":   func(p string) error { return os.Remove(p + "/content") },
		"3 bytes instead of":      func(p string) error { return os.Truncate(p+"/content", 3) },
		"content is not a regular": func(p string) error {
			return errors.Join(os.Remove(p+"/content"), syscall.Mkfifo(p+"/content", 0o600))
		},
		"not a directory": func(p string) error { return errors.Join(os.RemoveAll(p), os.WriteFile(p, nil, 0o600)) },
		"meta.json is not a regular": func(p string) error {
			return errors.Join(os.Remove(p+"/meta.json"), os.MkdirAll(p+"/meta.json/deep/down", 0o700))
		},
	}
	want := map[string]string{}
	for reason, do := range damage {
		e := keep(t, s, "path of "+reason, noon)
		want[e.ID] = reason
		if err := do(filepath.Join(dir, e.ID)); err != nil {
			t.Fatal(err)
		}
	}
	whole := keep(t, s, "whole", noon.Add(time.Hour))
	all := list(t, s)
	if len(all) != len(damage)+1 || !reflect.DeepEqual(all[len(all)-1], whole) {
		t.Errorf("listed %v", all)
	}
	for _, e := range all[:len(damage)] {
		if e.Kind != Damaged || !strings.HasPrefix(e.Reason, "damaged: ") || !strings.Contains(e.Reason, want[e.ID]) || !e.At.Equal(noon) {
			t.Errorf("%+v, want %q", e, want[e.ID])
		}
		if got := must[Entry](t)(s.Get(e.ID)); !reflect.DeepEqual(got, e) {
			t.Errorf("got %+v, listed %+v", got, e)
		}
		if strings.HasPrefix(want[e.ID], "content") || strings.HasPrefix(want[e.ID], "3") {
			if e.Path != "path of "+want[e.ID] { // the known fields are still returned
				t.Errorf("%+v", e)
			}
		} else if want[e.ID] != "not a directory" && contentOf(t, s, e.ID) != "path of "+want[e.ID] {
			t.Errorf("%s: its content is lost", want[e.ID])
		}
	}
	if n, err := s.Prune(noon.Add(time.Minute)); n != len(damage) || err != nil {
		t.Errorf("pruned %d, %v", n, err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{whole.ID}) {
		t.Errorf("left %v", got)
	}
}

// A stream generates content without holding it in memory, and records the largest requested
// piece.
type stream struct{ left, largest int }

func (r *stream) Read(p []byte) (int, error) {
	r.largest = max(r.largest, len(p))
	n := min(len(p), r.left)
	for i := range p[:n] {
		p[i] = byte((r.left - i) * 7)
	}
	r.left -= n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestLargeContentIsStreamed(t *testing.T) {
	const size = 10<<20 + 17
	s, _ := shelf(t)
	from := &stream{left: size}
	put := must[Entry](t)(s.Put(t.Context(), Entry{Kind: Gap, Path: "large"}, from))
	if from.largest > chunk || put.Size != size {
		t.Errorf("read %d bytes at once, kept %d", from.largest, put.Size)
	}
	f := must[*os.File](t)(s.Content(put.ID))
	defer f.Close()
	sum := sha256.New()
	if n := must[int64](t)(io.Copy(sum, f)); n != size || hex.EncodeToString(sum.Sum(nil)) != put.Sum {
		t.Errorf("%d bytes with another sum", n)
	}
}

// An endless reader cancels the context while it is read.
type endless struct{ cancel context.CancelFunc }

func (r endless) Read(p []byte) (int, error) { r.cancel(); return len(p), nil }

func TestPutStops(t *testing.T) {
	s, dir := shelf(t)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Put(ctx, Entry{Path: "endless"}, endless{cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := s.Put(ctx, Entry{Path: "late"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	broken := io.MultiReader(strings.NewReader("half"), io.NewSectionReader(nil, 0, 0), errReader{})
	if _, err := s.Put(t.Context(), Entry{Path: "broken"}, broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("broken reader: %v", err)
	}
	if got := names(t, dir); got != nil {
		t.Errorf("left %v", got)
	}
	if _, err := Open(filepath.Join(dir, "no", "where"), Limits{}).Put(t.Context(), Entry{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory above: %v", err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// eachFault runs act on a shelf with one old entry. Each operation in turn fails or crashes,
// until act succeeds without reaching the fault.
func eachFault(t *testing.T, act func(s *Shelf, old Entry) error, check func(t *testing.T, s *Shelf, dir string, old Entry, err error, crashed bool)) {
	for _, crash := range []bool{true, false} {
		for k, through := 0, false; !through; k++ {
			t.Run(fmt.Sprint("crash=", crash, "/", k), func(t *testing.T) {
				s, dir := shelf(t)
				old := keep(t, s, "old", noon)
				faulty := new(durabletest.FaultyDisk)
				if crash {
					faulty.CrashAt(k)
				} else {
					faulty.FailAt(k, syscall.EIO)
				}
				s.disk = faulty
				err := act(s, old)
				through = len(faulty.Trace()) <= k
				if (err == nil) != through {
					t.Fatalf("error %v after %v", err, faulty.Trace())
				}
				check(t, Open(dir, Limits{}), dir, old, err, crash)
			})
		}
	}
}

// wholeOrTemporary checks that everything except undamaged entries is temporary, that no caller
// sees temporary files, and that Prune removes exactly those.
func wholeOrTemporary(t *testing.T, s *Shelf, dir string) (entries []Entry, temps int) {
	t.Helper()
	entries = list(t, s)
	for _, e := range entries {
		if e.Kind == Damaged || contentOf(t, s, e.ID) != e.Path {
			t.Errorf("not whole: %+v", e)
		}
	}
	for _, name := range names(t, dir) {
		if strings.HasPrefix(name, durable.TempPrefix) {
			temps++
		}
	}
	if len(names(t, dir)) != len(entries)+temps {
		t.Errorf("the directory holds %v", names(t, dir))
	}
	if n, err := s.Prune(noon.Add(24 * time.Hour)); n != len(entries) || err != nil {
		t.Errorf("pruned %d of %d: %v", n, len(entries), err)
	}
	if left := names(t, dir); left != nil {
		t.Errorf("left after pruning: %v", left)
	}
	return entries, temps
}

func TestPutSurvivesEveryFault(t *testing.T) {
	var id string
	eachFault(t, func(s *Shelf, old Entry) error {
		e, err := s.Put(t.Context(), Entry{At: noon.Add(time.Hour), Kind: Gap, Path: "new"}, strings.NewReader("new"))
		id = e.ID
		return err
	}, func(t *testing.T, s *Shelf, dir string, old Entry, err error, crashed bool) {
		entries, temps := wholeOrTemporary(t, s, dir)
		placed := len(entries) == 2 && entries[1].ID == id
		if entries[0].ID != old.ID || placed != (id != "") || len(entries) > 2 {
			t.Errorf("the shelf holds %v, put said %q, %v", entries, id, err)
		}
		if err == nil && !placed || temps > 0 && !crashed {
			t.Errorf("error %v, %d temporary directories, %v", err, temps, entries)
		}
	})
}

func TestDropSurvivesEveryFault(t *testing.T) {
	eachFault(t, func(s *Shelf, old Entry) error { return s.Drop(old.ID) },
		func(t *testing.T, s *Shelf, dir string, old Entry, err error, crashed bool) {
			if entries, temps := wholeOrTemporary(t, s, dir); err == nil && len(entries)+temps > 0 || len(entries)+temps > 1 {
				t.Errorf("error %v, left %v and %d", err, entries, temps)
			}
		})
}

func TestPruneSurvivesEveryFault(t *testing.T) {
	eachFault(t, func(s *Shelf, old Entry) error {
		_, err := s.Prune(noon.Add(time.Minute))
		return err
	}, func(t *testing.T, s *Shelf, dir string, old Entry, err error, crashed bool) {
		if entries, temps := wholeOrTemporary(t, s, dir); err == nil && len(entries)+temps > 0 {
			t.Errorf("left %v and %d", entries, temps)
		}
	})
}

// Concurrent puts, lists and drops never show a partial entry.
func TestManyAtOnce(t *testing.T) {
	s, dir := shelf(t)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 25 {
				e, err := s.Put(t.Context(), Entry{At: noon, Kind: Gap, Path: fmt.Sprint(worker, i)}, strings.NewReader(fmt.Sprint(worker, i)))
				if err != nil {
					t.Error(err)
					return
				}
				all, err := s.List(t.Context())
				if err != nil || slices.ContainsFunc(all, func(e Entry) bool { return e.Kind == Damaged }) {
					t.Errorf("%v, %v", all, err)
				}
				if err := s.Drop(e.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if left := names(t, dir); left != nil {
		t.Errorf("left %v", left)
	}
}
