package resource_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/config"
	"lockkeeper/internal/resource"
)

// tables reads the tables of a configuration with this text.
func tables(t *testing.T, text string) (*resource.Set, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), config.FileName)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resource.Of(c)
}

// preset reads the tables of a preset, with some text behind them.
func preset(t *testing.T, name, more string) *resource.Set {
	t.Helper()
	p, err := resource.PresetOf(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tables(t, p.Tables+more)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unclear is what an error says to be unclear.
func unclear(t *testing.T, err error) *resource.UnclearError {
	t.Helper()
	var u *resource.UnclearError
	if !errors.As(err, &u) || len(u.Unclear) == 0 {
		t.Fatalf("%v: not an error that names what is unclear", err)
	}
	return u
}
