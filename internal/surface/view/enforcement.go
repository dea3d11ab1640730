package view

import (
	"context"
	"errors"
	"os"
	"time"

	"lockkeeper"

	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
)

// Levels of protection.
const (
	Enforced = "enforced" // an unlocked write is impossible
	Detected = "detected" // an unlocked write is noticed afterwards
	Advisory = "advisory" // nothing prevents an unlocked write
)

// probeEvery limits how often the machine is probed. A probe starts processes.
const probeEvery = time.Minute

// enforcement returns how agents and people are kept from writing around the gate.
func (rd *Reader) enforcement(ctx context.Context) Enforcement {
	return rd.probed.get(probeEvery, func() Enforcement { return rd.probe(context.WithoutCancel(ctx)) }) // other callers get the same result
}

func (rd *Reader) probe(ctx context.Context) Enforcement {
	mode, level, err := conduct.SandboxLevel(ctx, rd.project)
	e := Enforcement{Mode: string(mode), Level: level.String(), Missing: level.Missing}
	if err != nil && e.Missing == "" {
		e.Missing = err.Error()
	}
	e.Protections = []Protection{agentProtection(level, err), gateProtection(rd.project), commitProtection(ctx, rd.project),
		{Writer: "people", Name: "editors and shells of people", Level: Advisory, Fact: "a landing that finds an edit of a person keeps it and does not overwrite it",
			Next: "lock the files that you edit: lockkeeper lock exec --write PATH -- $EDITOR PATH"}}
	e.Protections = append(e.Protections, rd.hookProtections(ctx)...)
	return e
}

func agentProtection(level sandbox.Level, unmet error) Protection {
	w := Protection{Writer: "runs", Name: "agents and tests of a run", Level: Advisory, Fact: "they work in copies of the tree, and no sandbox confines them: " + level.Missing,
		Next: "set agent.sandbox: prefer in " + config.FileName + ", on Linux 6.2 or later with Landlock, or where user namespaces are permitted"}
	missing := ""
	if !level.Hides() && level.Missing != "" {
		missing = "; sockets of other programs can be reached, because there are no namespaces: " + level.Missing
	}
	switch {
	case unmet != nil:
		w.Broken, w.Fact = true, "agents do not start: "+unmet.Error()
	case level.HoldsWrites():
		w.Level, w.Fact, w.Next = Enforced, "they work in copies of the tree, and "+level.String()+" confines them"+missing, ""
	}
	return w
}

func gateProtection(a *project.Project) Protection {
	w := Protection{Writer: "everybody", Name: "writes through the gate", Level: Enforced, Fact: "only changes that a live grant covers can land"}
	if a.Config.Run.Locking != "on" || a.Config.Gate.Grant == "optional" {
		w.Level, w.Fact = Advisory, "legacy mode: a write without a grant is checked only against the allowed paths"
		w.Next = "set run.locking: on and gate.grant: required in " + config.FileName
	}
	return w
}

func commitProtection(ctx context.Context, a *project.Project) Protection {
	w := Protection{Writer: "everybody", Name: "commits of git", Level: Advisory, Fact: "no hook checks that locks cover the changes", Next: "lockkeeper init --git-hook"}
	var none *git.NoneError
	if _, err := git.Open(ctx, a.Root.Dir(), os.Environ()); errors.As(err, &none) {
		w.Fact, w.Next = "this is not a git repository", ""
		return w
	}
	switch there, err := git.HasHook(ctx, git.NewWorkTree(a.Root.Dir(), a.Root.Dir(), os.Environ())); {
	case err != nil:
		w.Fact = lockkeeper.Message(err)
	case there:
		w.Level, w.Fact, w.Next = Detected, "a hook refuses changes that no lock covers", ""
	}
	return w
}
