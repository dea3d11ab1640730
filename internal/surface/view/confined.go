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

// The levels of what is done about a way to write.
const (
	Enforced = "enforced" // it cannot be done
	Detected = "detected" // it is seen afterwards
	Advisory = "advisory" // nothing keeps anybody from it
)

// confinement is what this machine was found to enforce.
type confinement struct {
	Enforcement
	at time.Time
}

// probeEvery is how often this machine is tried anew: a trial starts processes.
const probeEvery = time.Minute

// enforcement is what keeps agents and people from writing around the gate here.
func (l *Look) enforcement(ctx context.Context) Enforcement {
	found, _ := share(ctx, &l.flights, "confinement", func(ctx context.Context) (*confinement, error) {
		l.mu.Lock()
		known := l.confined
		l.mu.Unlock()
		if known != nil && time.Since(known.at) < probeEvery {
			return known, nil
		}
		known = &confinement{Enforcement: l.probe(ctx), at: time.Now()}
		l.mu.Lock()
		l.confined = known
		l.mu.Unlock()
		return known, nil
	})
	if found == nil { // the caller did not wait for it
		return Enforcement{Mode: l.app.Config.Agent.Sandbox, Ways: []Way{}}
	}
	return found.Enforcement
}

func (l *Look) probe(ctx context.Context) Enforcement {
	mode, level, err := conduct.SandboxLevel(ctx, l.app)
	e := Enforcement{Mode: string(mode), Level: level.String(), Missing: level.Missing}
	if err != nil && e.Missing == "" {
		e.Missing = err.Error()
	}
	e.Ways = []Way{agentWay(level, err), gateWay(l.app), commitWay(ctx, l.app),
		{Writer: "people", Name: "editors and shells of people", Level: Advisory, Fact: "a landing that meets their edit keeps it, and does not write over it",
			Next: "hold what you edit: lockkeeper lock exec --write PATH -- $EDITOR PATH"}}
	e.Ways = append(e.Ways, l.hostWays(ctx)...)
	return e
}

func agentWay(level sandbox.Level, unmet error) Way {
	w := Way{Writer: "runs", Name: "agents and tests of a run", Level: Advisory, Fact: "they work in copies, and nothing keeps them there: " + level.Missing,
		Next: "set agent.sandbox: prefer in " + config.FileName + ", on Linux 6.2 or later with Landlock, or where user namespaces are permitted"}
	missing := ""
	if !level.Hides() && level.Missing != "" {
		missing = "; sockets of other programs can be reached, because there are no namespaces: " + level.Missing
	}
	switch {
	case unmet != nil:
		w.Broken, w.Fact = true, "they do not start: "+unmet.Error()
	case level.HoldsWrites():
		w.Level, w.Fact, w.Next = Enforced, "they work in copies, and "+level.String()+" keeps them there"+missing, ""
	}
	return w
}

func gateWay(a *project.Project) Way {
	w := Way{Writer: "everybody", Name: "writes through the gate", Level: Enforced, Fact: "only what a live grant covers lands"}
	if a.Config.Run.Locking != "on" || a.Config.Gate.Grant == "optional" {
		w.Level, w.Fact = Advisory, "the legacy mode: a write without a grant is held against the allowed paths alone"
		w.Next = "set run.locking: on and gate.grant: required in " + config.FileName
	}
	return w
}

func commitWay(ctx context.Context, a *project.Project) Way {
	w := Way{Writer: "everybody", Name: "commits of git", Level: Advisory, Fact: "no hook asks whether changes are covered", Next: "lockkeeper init --git-hook"}
	var none *git.NoneError
	if _, err := git.Open(ctx, a.Root.Dir(), os.Environ()); errors.As(err, &none) {
		w.Fact, w.Next = "there are none: this is no git repository", ""
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
