package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
)

// WriteJSON is WriteFile for a value as JSON, always in one form: two spaces of
// indentation, a newline at the end, and <, > and & as themselves.
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
	return w.WriteFile(ctx, path, b.Bytes(), perm)
}

// ReadJSON reads a file that holds exactly one JSON value.
func ReadJSON[T any](path string) (value T, err error) {
	// Opening a FIFO would wait for a writer.
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

// ReadJSONOr is ReadJSON for files whose loss is no harm: whatever keeps the
// file from being read as JSON of this type gives fallback, whole.
func ReadJSONOr[T any](path string, fallback T) T {
	value, err := ReadJSON[T](path)
	if err != nil {
		return fallback
	}
	return value
}
