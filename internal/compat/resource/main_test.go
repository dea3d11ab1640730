package resource_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/project/config"
)

// tables parses the tables of a configuration.
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

// preset parses the tables of a preset with text appended.
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

// unclear returns err as an *UnclearError.
func unclear(t *testing.T, err error) *resource.UnclearError {
	t.Helper()
	var u *resource.UnclearError
	if !errors.As(err, &u) || len(u.Unclear) == 0 {
		t.Fatalf("%v: not an *UnclearError", err)
	}
	return u
}
