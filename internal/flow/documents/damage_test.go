package documents

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A kept is a file of the directory of documents with a function that reads it.
type kept struct {
	path string
	read func() (any, error) // returns nil if the file is missing
}

// library returns a store with one file of each kind.
func library(t *testing.T) (*Store, map[string]kept) {
	t.Helper()
	s := fresh(t)
	f := s.Unit("blog/posts")
	_, err := f.Write(t.Context(), "analysis.json", result{Count: 12, Files: []string{"a.rb", "ü.rb"}}, About{By: "anna", WrittenAt: at(1)})
	must(t, err)
	must(t, f.WriteText(t.Context(), "topic", Text{Prompt: "What -- and why?", Method: MethodAPI, By: "anna", At: at(2), Body: "# Found\n\nMuch.\n"}))
	must(t, s.Record(t.Context(), PastDecision{Description: "Split it.", Controller: "posts", Decision: Deferred, Timestamp: at(3), Notes: "later"}))
	must(t, s.Record(t.Context(), PastDecision{Description: "Rename it.", Controller: "posts", Decision: Deferred, Timestamp: at(4)}))
	sum, err := f.Keep(t.Context(), strings.NewReader("class Posts\nend\n"))
	must(t, err)
	blob, err := f.Kept(sum)
	must(t, err)
	must(t, blob.Close())
	return s, map[string]kept{
		"document": {filepath.Join(f.Dir(), "analysis.json"), func() (any, error) {
			doc, err := f.Read(t.Context(), "analysis.json", checkResult)
			if doc == nil {
				return nil, err
			}
			return string(doc.Body), err
		}},
		"text": {filepath.Join(f.Dir(), "research", "topic.md"), func() (any, error) {
			text, err := f.ReadText(t.Context(), "topic")
			if text == nil {
				return nil, err
			}
			return *text, err
		}},
		"decisions": {filepath.Join(s.Dir(), "decisions", "deferred.json"), func() (any, error) {
			entries, err := s.PastDecisions(t.Context())
			if entries == nil {
				return nil, err
			}
			return entries, err
		}},
		"content": {blob.Name(), func() (any, error) {
			file, err := f.Kept(sum)
			if err != nil {
				return nil, err
			}
			return nil, errors.Join(file.Close(), errors.New("damaged, and handed out"))
		}},
	}
}

// shows: PL-85 GP-22
func TestWhatIsCutOffIsNeverTakenForWhole(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	s, files := library(t)
	for what, file := range files {
		whole, err := os.ReadFile(file.path)
		must(t, err)
		before, _ := file.read()
		for n := range whole {
			must(t, os.WriteFile(file.path, whole[:n], 0o644))
			is, err := file.read()
			var bad *MalformedError
			switch {
			case errors.As(err, &bad) && is == nil:
			case what == "text" && n == 0 && err == nil && is == nil: // no response
			case n == len(whole)-1 && what != "text" && whole[n] == '\n' && err == nil && reflect.DeepEqual(is, before): // only the final newline is missing
			default:
				t.Fatalf("%s of %d bytes cut to %d: got %v, %v", what, len(whole), n, is, err)
			}
		}
		if what == "decisions" {
			must(t, os.WriteFile(file.path, whole[:len(whole)/2], 0o644))
			wantMalformed(t, s.Record(t.Context(), PastDecision{Description: "x", Controller: "c", Decision: Deferred}))
			if is, err := os.ReadFile(file.path); err != nil || !bytes.Equal(is, whole[:len(whole)/2]) {
				t.Errorf("the malformed list was started afresh: %s, %v", is, err)
			}
		}
		must(t, os.WriteFile(file.path, whole, 0o644))
	}
}

// shows: PL-85 GP-22
func TestWhatIsDamagedIsNeverTakenForRight(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	_, files := library(t)
	for what, file := range files {
		whole, err := os.ReadFile(file.path)
		must(t, err)
		before, _ := file.read()
		for n := range whole {
			for bit := range 8 {
				damaged := bytes.Clone(whole)
				damaged[n] ^= 1 << bit
				if what == "decisions" && (n+bit)%16 != 0 {
					continue // each of these makes a copy
				}
				must(t, os.WriteFile(file.path, damaged, 0o644))
				is, err := file.read()
				var bad *MalformedError
				if err == nil && reflect.DeepEqual(is, before) {
					continue // a space became a tab, or About changed
				}
				if !errors.As(err, &bad) || is != nil {
					t.Fatalf("%s with bit %d of byte %d flipped: got %v, %v\n%s", what, bit, n, is, err, damaged)
				}
			}
		}
		must(t, os.WriteFile(file.path, whole, 0o644))
	}
}

// shows: GP-22
func TestAMalformedListIsKeptAside(t *testing.T) {
	s, files := library(t)
	list := files["decisions"]
	whole, err := os.ReadFile(list.path)
	must(t, err)
	must(t, os.WriteFile(list.path, []byte("half a"), 0o644))
	for range 3 {
		_, err := s.PastDecisions(t.Context())
		if bad := wantMalformed(t, err); bad.Path != "decisions/deferred.json" || !strings.Contains(bad.Next, "deferred.previous.json") {
			t.Errorf("got %v", bad)
		}
	}
	copies, err := filepath.Glob(list.path + ".malformed-*")
	must(t, err)
	if len(copies) != 1 {
		t.Fatalf("copies: %q", copies)
	}
	if is, err := os.ReadFile(copies[0]); err != nil || string(is) != "half a" {
		t.Errorf("the copy is %q, %v", is, err)
	}

	must(t, os.Remove(list.path)) // a missing list is an error, too
	_, err = s.PastDecisions(t.Context())
	if bad := wantMalformed(t, err); !strings.Contains(bad.Reason, "missing") {
		t.Errorf("got %v", bad)
	}
	wantMalformed(t, s.Record(t.Context(), PastDecision{Description: "x", Controller: "c", Decision: Rejected}))
	before, err := os.ReadFile(filepath.Join(filepath.Dir(list.path), "deferred.previous.json"))
	must(t, err)
	must(t, os.WriteFile(list.path, before, 0o644))
	entries, err := s.PastDecisions(t.Context())
	must(t, err)
	if len(entries) != 1 || entries[0].Description != "Split it." {
		t.Errorf("the state before is %+v", entries)
	}
	must(t, os.WriteFile(list.path, whole, 0o644))
	if entries, err = s.PastDecisions(t.Context()); err != nil || len(entries) != 2 {
		t.Errorf("repaired: %+v, %v", entries, err)
	}
}

// shows: CF-30 PL-85
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "analysis.json"), []byte(`{"count":1,"files":[]}`), 0o644))
	swap := func(path, target string) {
		t.Helper()
		must(t, os.RemoveAll(path))
		must(t, os.Symlink(target, path))
	}
	untouched := func() {
		t.Helper()
		entries, err := os.ReadDir(outside)
		must(t, err)
		if len(entries) != 1 {
			t.Errorf("something was written outside: %v", entries)
		}
	}
	for what, target := range map[string]string{"outside": outside, "inside": "../other", "nowhere": "missing"} {
		s, files := library(t)
		_, err := s.Unit("other").Write(t.Context(), "analysis.json", result{}, About{})
		must(t, err)
		for name, file := range files {
			swap(file.path, filepath.Join(target, "analysis.json"))
			if is, err := file.read(); is != nil || !isMalformed(err) {
				t.Errorf("%s, %s: got %v, %v", what, name, is, err)
			}
		}
		f := s.Unit("blog/posts")
		_, err = f.Write(t.Context(), "analysis.json", result{}, About{})
		if err == nil {
			t.Errorf("%s: written through, or over, a link", what)
		}
		kept, err := f.SetAside(t.Context(), "analysis.json")
		must(t, err)
		if link, err := os.Readlink(filepath.Join(s.Dir(), kept)); err != nil || link != filepath.Join(target, "analysis.json") {
			t.Errorf("%s: the link set aside is %q, %v", what, link, err)
		}

		swap(filepath.Join(f.Dir(), "research"), target)
		_, err = f.ReadText(t.Context(), "analysis")
		wantMalformed(t, err)
		wantMalformed(t, f.WriteText(t.Context(), "topic", Text{Method: MethodPaste, Body: "x"}))
		swap(filepath.Join(s.Dir(), "decisions"), target)
		_, err = s.PastDecisions(t.Context())
		wantMalformed(t, err)
		swap(f.Dir(), strings.TrimPrefix(target, "../"))
		_, err = f.Read(t.Context(), "analysis.json", nil)
		wantMalformed(t, err)
		_, err = f.Write(t.Context(), "extract.json", result{}, About{})
		wantMalformed(t, err)
		_, err = f.Keep(t.Context(), strings.NewReader("x"))
		wantMalformed(t, err)
		_, err = f.SetAside(t.Context(), "analysis.json")
		wantMalformed(t, err)
		swap(filepath.Join(s.Dir(), lockFile), filepath.Join(outside, "made"))
		_, err = s.Unit("other").Write(t.Context(), "extract.json", result{}, About{})
		wantMalformed(t, err)
		untouched()
	}
}

func isMalformed(err error) bool {
	var bad *MalformedError
	return errors.As(err, &bad)
}

// A pipe would block a reader, and a directory is not a document.
//
// shows: PL-85
func TestPathsThatAreNotFiles(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	_, files := library(t)
	for what, file := range files {
		must(t, os.Remove(file.path))
		must(t, syscall.Mkfifo(file.path, 0o644))
		if is, err := file.read(); is != nil || !isMalformed(err) {
			t.Errorf("%s as a pipe: got %v, %v", what, is, err)
		}
		must(t, os.Remove(file.path))
		must(t, os.Mkdir(file.path, 0o755))
		if is, err := file.read(); is != nil || !isMalformed(err) {
			t.Errorf("%s as a directory: got %v, %v", what, is, err)
		}
		must(t, os.Remove(file.path))
		if is, err := file.read(); is != nil || err != nil && !isMalformed(err) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, missing: got %v, %v", what, is, err)
		}
		must(t, os.WriteFile(file.path, nil, 0o644))
		must(t, os.Truncate(file.path, maxSize+1))
		if is, err := file.read(); is != nil || !isMalformed(err) {
			t.Errorf("%s, huge: got %v, %v", what, is, err)
		}
	}
}

// leftovers lists the temporary files below a directory.
func leftovers(t *testing.T, dir string) (found []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".lockkeeper-tmp-") {
			found = append(found, path)
		}
		return err
	}))
	slices.Sort(found)
	return found
}
