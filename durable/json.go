package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteJSON encodes a value and writes it like WriteFile. It creates missing parent
// directories. The format is fixed: an indentation of two spaces, a final newline, and <, >
// and & unescaped.
func WriteJSON(ctx context.Context, path string, value any, perm fs.FileMode) error {
	return Writer{}.WriteJSON(ctx, path, value, perm)
}

// WriteJSON is the package's WriteJSON with this writer's operations.
func (w Writer) WriteJSON(ctx context.Context, path string, value any, perm fs.FileMode) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return &Error{Op: "encode", Path: path, Err: err}
	}
	if err := makeDirs(w.ops(), filepath.Dir(path), dirPerm(perm)); err != nil {
		return &Error{Op: "make directory", Path: path, Err: err}
	}
	return w.WriteFile(ctx, path, b.Bytes(), perm)
}

// dirPerm lets every user who may read a file enter its directory.
func dirPerm(perm fs.FileMode) fs.FileMode { return 0o700 | perm&0o044 | perm&0o044>>2 }

// makeDirs creates a directory and its missing parents. Each name is made durable before
// anything is created below it. If that fails, the directory is removed, so that a later
// call does not treat it as durable.
func makeDirs(ops Ops, dir string, perm fs.FileMode) error {
	if _, err := ops.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return fs.ErrNotExist
	}
	if err := makeDirs(ops, parent, perm); err != nil {
		return err
	}
	if err := ops.Mkdir(dir, perm); err != nil {
		if errors.Is(err, fs.ErrExist) { // another process created the directory, and syncs it
			return nil
		}
		return err
	}
	if err := ops.SyncDir(parent); err != nil {
		return errors.Join(err, ops.Remove(dir))
	}
	return nil
}

// ReadJSON reads a file that contains exactly one JSON value.
func ReadJSON[T any](path string) (value T, err error) {
	// Opening a FIFO would block until there is a writer.
	info, err := os.Stat(path)
	if err != nil {
		return value, err
	}
	if !info.Mode().IsRegular() {
		return value, fmt.Errorf("read %s: not a regular file", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return value, err
	}
	var read T
	if err := json.Unmarshal(data, &read); err != nil {
		return value, fmt.Errorf("read %s: %w", path, err)
	}
	return read, nil
}

// ReadJSONOr is ReadJSON for files that may be lost: if the file cannot be read as
// JSON of this type, it returns fallback.
func ReadJSONOr[T any](path string, fallback T) T {
	value, err := ReadJSON[T](path)
	if err != nil {
		return fallback
	}
	return value
}
