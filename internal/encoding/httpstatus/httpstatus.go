package httpstatus

import (
	"errors"
	"io/fs"
	"net/http"

	"lockkeeper"
)

// Of returns the status of an error.
func Of(err error) int {
	if errors.Is(err, fs.ErrNotExist) {
		return http.StatusNotFound
	}
	return OfCode(lockkeeper.CodeOf(err))
}

// OfCode returns the status of a code. An unknown code is an internal error.
func OfCode(code lockkeeper.Code) int {
	switch code {
	case lockkeeper.CodeInput:
		return http.StatusBadRequest
	case lockkeeper.CodeOverLock:
		return http.StatusUnprocessableEntity
	case lockkeeper.CodeBlocked, lockkeeper.CodeTimeout: // not 408, which makes browsers retry
		return http.StatusLocked
	case lockkeeper.CodeViolation, lockkeeper.CodeNotHeld, lockkeeper.CodeRefused, lockkeeper.CodeBudget:
		return http.StatusConflict
	case lockkeeper.CodeStore:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
