package durable_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"lockkeeper/durable"
	"lockkeeper/durable/durabletest"
)

type lease struct {
	Owner string         `json:"owner"`
	Data  map[string]any `json:"data"`
}

// shows: LE-27
func TestWriteJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease.json")
	value := lease{"a <b> & c", map[string]any{"z": 1.0, "a": []any{"x"}}}
	if err := durable.WriteJSON(t.Context(), path, value, 0o600); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"owner\": \"a <b> & c\",\n  \"data\": {\n    \"a\": [\n      \"x\"\n    ],\n    \"z\": 1\n  }\n}\n"
	if got := string(read(t, path)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	back, err := durable.ReadJSON[lease](path)
	if err != nil || !reflect.DeepEqual(back, value) {
		t.Errorf("read back %v, %v", back, err)
	}
	if err := durable.WriteJSON(t.Context(), path, math.NaN(), 0o600); err == nil {
		t.Error("NaN was written")
	}
	if got := string(read(t, path)); got != want {
		t.Error("a value that is not JSON changed the file")
	}
}

// shows: LE-28
func TestReadJSONOr(t *testing.T) {
	dir := t.TempDir()
	fallback := lease{Owner: "fallback"}
	for name, content := range map[string]string{
		"empty": "", "part": `{"owner": "x", "da`, "two": `{"owner":"x"} {}`, "type": `{"owner": 7}`, "binary": "\x00\xff",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "part", "two", "type", "binary", "fifo", "absent", "."} {
		path := filepath.Join(dir, name)
		if got := durable.ReadJSONOr(path, fallback); !reflect.DeepEqual(got, fallback) {
			t.Errorf("%s: got %v, want the fallback", name, got)
		}
		if _, err := durable.ReadJSON[lease](path); err == nil {
			t.Errorf("%s: ReadJSON has no error", name)
		}
	}
	path := filepath.Join(dir, "good")
	if err := os.WriteFile(path, []byte(`{"owner": "x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := durable.ReadJSONOr(path, fallback); got.Owner != "x" {
		t.Errorf("got %v", got)
	}
}

// Missing directories are created, and each is durable in its parent before anything is
// created in it.
func TestWriteJSONMakesParents(t *testing.T) {
	path, faults := filepath.Join(t.TempDir(), "a/b/c.json"), new(durabletest.Faults)
	if err := (durable.Writer{Ops: faults}).WriteJSON(t.Context(), path, 1, 0o640); err != nil {
		t.Fatal(err)
	}
	if got, err := durable.ReadJSON[int](path); got != 1 || err != nil {
		t.Error(got, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the directory is %v, %v", info.Mode(), err)
	}
	made := []durabletest.Op{durabletest.Mkdir, durabletest.SyncDir, durabletest.Mkdir, durabletest.SyncDir, durabletest.CreateTemp}
	var seen []durabletest.Op
	for _, op := range faults.Trace() {
		if slices.Contains(made, op) {
			seen = append(seen, op)
		}
	}
	if len(seen) < len(made) || !slices.Equal(seen[:len(made)], made) {
		t.Errorf("operations %v", faults.Trace())
	}
}

// A directory whose name may not survive a crash is removed, so that the next call does not
// treat it as durable.
func TestWriteJSONParentNotDurable(t *testing.T) {
	dir, faults := t.TempDir(), new(durabletest.Faults)
	faults.FailNext(durabletest.SyncDir, 1, syscall.EIO)
	var failed *durable.Error
	if err := (durable.Writer{Ops: faults}).WriteJSON(t.Context(), filepath.Join(dir, "a/b.json"), 1, 0o600); !errors.As(err, &failed) || failed.Replaced {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
