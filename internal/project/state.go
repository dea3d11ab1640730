package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/machine/process"
)

// StateDir returns the user's own directory.
func StateDir(env func(string) (string, bool)) (string, error) {
	base, _ := env("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // the variable counts also if it is empty; a relative path does not count
		home, _ := env("HOME")
		if !filepath.IsAbs(home) {
			return "", &lockkeeper.InputError{Field: "HOME", Value: home,
				Reason: "no home directory, so there is no place for the secret tokens of grants",
				Next:   "set HOME or XDG_STATE_HOME to a directory of your own"}
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "lockkeeper"), nil
}

// makeDir makes a directory that only this user can access, and its parents. It removes access
// of others from an existing one.
func makeDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(dir, 0o700)
	case err != nil:
	case !info.IsDir():
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("it is not a directory")}
	case info.Mode().Perm()&0o077 != 0:
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return &lockkeeper.StoreError{Store: dir, Reason: "your state directory cannot be made", Err: err,
			Next: "set XDG_STATE_HOME to a directory you may write"}
	}
	return nil
}

// Tokens stores the secret tokens of this user's grants in one space. Every process of the user
// can read the files, also agents. So each token records the agent that acquired it, and Get
// refuses it to other agents.
type Tokens struct {
	dir    string
	caller func() Caller
}

func (t Tokens) path(grant string) (string, error) {
	return filepath.Join(t.dir, grant), CheckGrantID(grant)
}

// CheckGrantID refuses a text that is not the id of a grant.
func CheckGrantID(id string) error {
	if isUUID(id) {
		return nil
	}
	return &lockkeeper.InputError{Field: "grant", Value: id, Reason: "not a grant id",
		Next: "copy the id from `lockkeeper status`; if it comes from `lockkeeper lock acquire`, check whether that failed"}
}

func (t Tokens) Put(ctx context.Context, grant, token string) error {
	path, err := t.path(grant)
	if err != nil {
		return err
	}
	if err := makeDir(t.dir); err != nil {
		return err
	}
	text, err := t.who().seal(token)
	if err != nil {
		return err
	}
	return durable.WriteFile(ctx, path, text, 0o600)
}

// Share stores the token of a grant that this process holds, for the command that it runs under
// it. That command may use the grant, even if it is an agent. The returned function removes it.
func (t Tokens) Share(ctx context.Context, grant, token string) (remove func() error, err error) {
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	t.caller = func() Caller { return Caller{Agent: lockkeeper.System().Name, Own: self} }
	return func() error { return t.Drop(grant) }, t.Put(ctx, grant, token)
}

// Get returns the token of a grant, or "" if this user has none. It refuses an agent a token
// that another caller acquired.
func (t Tokens) Get(grant string) (string, error) {
	path, err := t.path(grant)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return t.who().open(grant, text)
}

func (t Tokens) who() Caller {
	if t.caller == nil {
		return Caller{}
	}
	return t.caller()
}

func (t Tokens) Drop(grant string) error {
	path, err := t.path(grant)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep removes the tokens of grants that have ended. live lists the grants at a time before the
// call; younger tokens may belong to later grants and stay. It ignores errors: the token of an
// ended grant is harmless, and the next Sweep tries again.
func (t Tokens) Sweep(live func(grant string) bool) {
	const young = time.Minute
	entries, _ := os.ReadDir(t.dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || live(e.Name()) || time.Since(info.ModTime()) < young {
			continue
		}
		os.Remove(filepath.Join(t.dir, e.Name()))
	}
}

// AccessDir returns the directory with the accounts of this codebase's server, in the user's own
// directory.
func (a *Project) AccessDir() string { return filepath.Join(a.StateDir, "access", a.Space) }

// WorkspacesDir returns the directory of the workspaces of runs.
func (a *Project) WorkspacesDir() string {
	return workspacesDir(a.Config.Run.Workspaces, a.StateDir, a.Space, a.Env)
}

func workspacesDir(set, state, space string, env func(string) (string, bool)) string {
	switch below, isHome := strings.CutPrefix(set, "~/"); {
	case isHome:
		home, _ := env("HOME")
		set = filepath.Join(home, below)
	case set == "":
		set = filepath.Join(state, "workspaces")
	}
	return filepath.Join(set, space[:8])
}

// SlotsDir returns the directory with a file for each slot of tests, locked while it is in use.
func (a *Project) SlotsDir() string { return filepath.Join(a.StateDir, "slots", a.Space[:8]) }

// CachesDir returns the directory that keeps what tests added to the caches of tools.
func (a *Project) CachesDir() string { return filepath.Join(a.StateDir, "caches", a.Space[:8]) }

// A Caller describes who uses the tokens of this user. The zero value is a person, who may use
// all of them.
type Caller struct {
	Agent string               // the name of the agent; empty: a person
	Own   lockkeeper.Process   // the process of the agent
	Above []lockkeeper.Process // the ancestors of this process: an agent that another one started may use the tokens of both
}

// seal returns the content of a token file: the token, and for an agent its process in a second
// line.
func (c Caller) seal(token string) ([]byte, error) {
	if c.Agent == "" {
		return []byte(token), nil
	}
	own, err := json.Marshal(c.Own)
	return fmt.Appendf(nil, "%s\n%s", token, own), err
}

// open returns a sealed token if this caller may use it.
func (c Caller) open(grant string, text []byte) (string, error) {
	token, own, agents := strings.Cut(string(text), "\n")
	if c.Agent == "" {
		return token, nil
	}
	refused := &lockkeeper.RefusedError{Act: "using grant " + grant,
		Reason: "this runs inside an agent (" + c.Agent + "), and an agent uses only grants that it acquired itself with lockkeeper lock acquire; a person or a session acquired this one",
		Next:   "claims of your session are released at the end of its turn; for other grants ask the holder: lockkeeper status"}
	if !agents {
		return "", refused
	}
	var by lockkeeper.Process
	if err := json.Unmarshal([]byte(own), &by); err != nil {
		return "", fmt.Errorf("cannot read who acquired grant %s: %w", grant, err)
	}
	if by == c.Own || slices.Contains(c.Above, by) {
		return token, nil
	}
	refused.Reason = fmt.Sprintf("this runs inside an agent (%s), and an agent uses only grants that it acquired itself; another agent, process %d, acquired this one", c.Agent, by.PID)
	return "", refused
}
