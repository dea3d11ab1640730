package agents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/project/detect"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// propose looks at a codebase without a configuration, and shows the one that it proposes.
func (p *program) propose(ctx context.Context, o *initOptions) error {
	path := filepath.Join(p.Base(), config.FileName)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil && o.agent != "" {
			err = &lockkeeper.InputError{Field: "agent", Value: o.agent, Reason: path + " exists", Next: "change agent.name and agent.command there"}
		}
		return err
	}
	found, err := detect.Look(ctx, p.Base(), p.Lookup, p.Env)
	if err != nil {
		return err
	}
	if o.agent != "" {
		found.Agent = detect.Agent(o.agent)
	}
	o.found, o.File = found, found.File()
	if p.Attended() && !p.JSON {
		fmt.Fprintf(p.Out, "%s:\n\n%s\n", config.FileName, command.CleanLines(o.File))
	}
	return nil
}

func (p *program) showInit(done *project.InitResult, found *detect.Found, next string) error {
	if p.JSON {
		return p.PrintJSON(struct {
			*project.InitResult
			Found *detect.Found `json:"found,omitempty"`
		}{done, found})
	}
	if done.Already && len(done.Made) == 0 {
		fmt.Fprintf(p.Out, "%s is already a root (space %s); nothing changed\n", term.Clean(done.Root), done.Space)
		return nil
	}
	fmt.Fprintf(p.Out, "%s is ready: space %s, made %s\n", term.Clean(done.Root), done.Space, strings.Join(done.Made, ", "))
	if done.NextMachine != "" {
		fmt.Fprintf(p.Out, "on the next machine run: %s (in a clone that has this lockkeeper.yaml, lockkeeper init is enough)\n", term.Clean(done.NextMachine))
	}
	if len(done.Allowed) > 0 {
		fmt.Fprintf(p.Out, "the gate may write only to: %s, and none of these exist here; change gate.allowed_write_paths in %s\n", term.Clean(strings.Join(done.Allowed, ", ")), config.FileName)
	}
	p.showFound(found)
	p.Advise(next)
	return nil
}

// showFound says what the new configuration has, on one line for each setting.
func (p *program) showFound(found *detect.Found) {
	if found == nil {
		return
	}
	say := func(what string, values ...string) {
		if text := strings.Join(values, ", "); text != "" {
			fmt.Fprintf(p.Out, "%-14s %s\n", what, term.Clean(text))
		}
	}
	say("found", found.Summary())
	say("agents change", found.Writes...)
	say("tests", found.Test)
	say("checks", found.Checks...)
	say("agent", strings.Join(found.Agent, " "))
	if len(found.Agent) == 0 {
		say("note", "no agent of runs was found in PATH: install one, or name a command with --agent")
	}
	for _, note := range found.Notes {
		say("note", note)
	}
}
