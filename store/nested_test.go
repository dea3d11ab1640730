package store_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"lockkeeper/lock"
	"lockkeeper/store"
)

// A body of a transaction cannot begin another one: nothing that it gets leads to one, and no
// statement of a store imitates one.
//
// shows: DL-57
func TestNoNestedTransactions(t *testing.T) {
	for _, body := range []reflect.Type{reflect.TypeFor[store.Tx](), reflect.TypeFor[store.Reader](), reflect.TypeFor[*lock.Tx]()} {
		for i := range body.NumMethod() {
			m := body.Method(i)
			for at := range m.Type.NumIn() {
				if in := m.Type.In(at); in.Kind() == reflect.Func && in.NumIn() > 0 && leadsToTx(in.In(0)) {
					t.Errorf("%s.%s calls a function with a transaction", body, m.Name)
				}
			}
			for at := range m.Type.NumOut() {
				if leadsToTx(m.Type.Out(at)) {
					t.Errorf("%s.%s returns %s, which begins a transaction", body, m.Name, m.Type.Out(at))
				}
			}
		}
	}
	imitation := regexp.MustCompile(`(?i)\b(SAVEPOINT|ROLLBACK TO|RELEASE SAVEPOINT)\b`)
	seen := 0
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".sql") {
			return err
		}
		seen++
		text, err := os.ReadFile(path)
		if found := imitation.Find(text); found != nil {
			t.Errorf("%s has %s", path, found)
		}
		return err
	})
	if err != nil || seen < 20 {
		t.Errorf("%d files were read, %v", seen, err)
	}
}

// leadsToTx reports whether a value is a transaction, or can begin one.
func leadsToTx(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[store.Tx]()) || t.Implements(reflect.TypeFor[store.Store]())
}
