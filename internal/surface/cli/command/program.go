package command

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/term"
)

// Program is one call of the program: its IO and the flags of all commands.
type Program struct {
	*term.IO
	Out            *term.Output // instead of the IO's
	Args           []string
	WorkDir, Store string
	JSON           bool

	purposes map[string]string // the reasons of the grants that block this call, by id
	Sessions *session.Registry // of the open project; nil: none is open
}

// WithQueue opens the project and its queue, and runs a command on them.
func (p *Program) WithQueue(ctx context.Context, s project.Settings, run func(*project.Project, *job.Queue) error) error {
	return p.WithSettings(ctx, s, func(a *project.Project) error {
		q, err := job.Open(a)
		if err != nil {
			return err
		}
		return run(a, q)
	})
}

// Base returns the directory that the program works in.
func (p *Program) Base() string {
	if p.WorkDir == "" || filepath.IsAbs(p.WorkDir) {
		return cmp.Or(p.WorkDir, p.Dir)
	}
	return filepath.Join(p.Dir, p.WorkDir)
}

func (p *Program) Settings() project.Settings {
	return project.Settings{Dir: p.Base(), Store: p.Store, Env: p.Lookup, Caller: p.caller}
}

// With opens the project and runs a command on it.
func (p *Program) With(ctx context.Context, run func(*project.Project) error) error {
	return p.WithSettings(ctx, p.Settings(), run)
}

func (p *Program) WithSettings(ctx context.Context, s project.Settings, run func(*project.Project) error) (err error) {
	a, err := project.Open(ctx, s)
	if err != nil {
		return err
	}
	p.NoteRecovery(a.Recovery)
	p.Sessions = session.Open(a)
	defer func() {
		p.Sessions = nil
		if closing := a.Close(); err == nil {
			err = closing
		}
	}()
	err = run(a)
	if err != nil {
		p.purpose(ctx, a, err)
	}
	return err
}

// PrintJSON writes one value to standard output.
func (p *Program) PrintJSON(value any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// Exists reports whether there is something at a path as it was typed.
func (p *Program) Exists(name string) bool {
	_, err := os.Lstat(filepath.Join(p.Base(), name))
	return err == nil
}
