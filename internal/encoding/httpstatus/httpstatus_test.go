package httpstatus

import (
	"fmt"
	"io/fs"
	"net/http"
	"testing"

	"lockkeeper"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{&lockkeeper.InputError{Field: "path"}, http.StatusBadRequest},
		{fmt.Errorf("asked: %w", &lockkeeper.InputError{Field: "path"}), http.StatusBadRequest},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, http.StatusNotFound},
		{fmt.Errorf("the disk is gone"), http.StatusInternalServerError},
	} {
		if got := Of(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// Only internal failures have a status of 500 or above.
func TestOfCode(t *testing.T) {
	ours := map[lockkeeper.Code]bool{lockkeeper.CodeFailed: true, lockkeeper.CodeStore: true}
	for _, code := range []lockkeeper.Code{lockkeeper.CodeInput, lockkeeper.CodeBlocked, lockkeeper.CodeTimeout, lockkeeper.CodeViolation, lockkeeper.CodeOverLock,
		lockkeeper.CodeNotHeld, lockkeeper.CodeRefused, lockkeeper.CodeStore, lockkeeper.CodeBudget, lockkeeper.CodeFailed} {
		if got := OfCode(code); got >= 500 != ours[code] {
			t.Errorf("%s is %d", code, got)
		}
	}
}
