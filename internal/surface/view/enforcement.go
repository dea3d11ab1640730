package view

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/git"
	"lockkeeper/internal/git/manager"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/session"
)

// Levels of protection.
const (
	Enforced = "enforced" // an unlocked write is impossible
	Detected = "detected" // an unlocked write is noticed afterwards
	Advisory = "advisory" // nothing prevents an unlocked write
)

// Weakest returns the weakest level of the protections against agents, those of runs and those that
// people start.
func (e Enforcement) Weakest() string {
	weakest := Enforced
	for _, p := range e.Protections {
		switch {
		case p.Writer == "people" || p.Writer == "everybody":
		case p.Level == Advisory, p.Level == Detected && weakest == Enforced:
			weakest = p.Level
		}
	}
	return weakest
}

// probeEvery limits how often the machine is probed. A probe starts processes.
const probeEvery = time.Minute

// enforcement returns how agents and people are kept from writing around the gate.
func (rd *Reader) enforcement(ctx context.Context) Enforcement {
	e := rd.probed.get(probeEvery, func() Enforcement { return rd.probe(context.WithoutCancel(ctx)) }) // all callers get one result
	e.Protections = append(slices.Clone(e.Protections), rd.unchecked(ctx)...)
	return e
}

// unchecked returns the running agents that nothing checks. It is not cached, so that a page shows
// such an agent within seconds.
func (rd *Reader) unchecked(ctx context.Context) (list []Protection) {
	found, err := session.Open(rd.project).Unchecked(ctx)
	if err != nil {
		return []Protection{{Writer: "agents", Name: "agents without hooks", Level: Advisory, Fact: "the running agents cannot be listed: " + lockkeeper.Message(err)}}
	}
	for _, u := range found {
		list = append(list, Protection{Writer: "agents", Name: u.String(), Level: Advisory, Fact: "it works here, and its hooks have not reported: nothing refuses its writes",
			Next: "restart the agent without the option or setting that disables its hooks"})
	}
	return list
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
	w := Protection{Writer: "runs", Name: "agents and tests of a run", Level: Advisory, Fact: "each sees the tree with only its own changes, and no sandbox confines them: " + level.Missing,
		Next: "set agent.sandbox: prefer in " + config.FileName + ", on Linux 6.2 or later with Landlock, or where user namespaces are permitted"}
	missing := ""
	if !level.Hides() && level.Missing != "" {
		missing = "; sockets of other programs can be reached, because there are no namespaces: " + level.Missing
	}
	switch {
	case unmet != nil:
		w.Broken, w.Fact = true, "agents do not start: "+unmet.Error()
	case level.HoldsWrites():
		w.Level, w.Fact, w.Next = Enforced, "each sees the tree with only its own changes, and "+level.String()+" confines them"+missing, ""
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
	switch there, err := checksCommits(ctx, git.NewWorkTree(a.Root.Dir(), a.Root.Dir(), os.Environ())); {
	case err != nil:
		w.Fact = lockkeeper.Message(err)
	case there:
		w.Level, w.Fact, w.Next = Detected, "a hook refuses files that others hold, or changes that no lock covers", ""
	}
	return w
}

// checksCommits reports whether a pre-commit hook of git checks commits, itself or through the
// program that manages the hooks.
func checksCommits(ctx context.Context, tree *git.WorkTree) (bool, error) {
	top, hooks, err := git.CommitHooks(ctx, tree)
	for _, text := range hooks {
		checks := manager.Checks(text)
		if !checks && err == nil {
			checks, err = manager.Manages(text, top)
		}
		if checks {
			return true, nil
		}
	}
	return false, err
}

// hookProtections returns the protections of every interactive agent that is installed or
// enrolled here.
func (rd *Reader) hookProtections(ctx context.Context) (list []Protection) {
	site := enrol.At(rd.project.Root.Dir(), rd.project.Env)
	for _, h := range enrol.Hosts() {
		list = append(list, HookProtections(ctx, site, site.Status(h), func() (bool, error) { return reported(ctx, session.Open(rd.project), h) })...)
	}
	return list
}

func reported(ctx context.Context, sessions *session.Registry, h enrol.Host) (bool, error) {
	live, err := sessions.Live(ctx)
	for _, s := range live {
		if s.Agent == h.Hook {
			return true, err
		}
	}
	return false, err
}

// HookProtections returns the protections of one agent program, or nil if it is neither
// installed nor enrolled. It calls the hook with an input that changes nothing. seen
// reports whether a session of the program has used its hook; some programs skip hooks
// until a person trusts them.
func HookProtections(ctx context.Context, site enrol.Site, st enrol.Status, seen func() (bool, error)) []Protection {
	name := st.Host.Name
	w := Protection{Writer: name, Name: "tools of " + name + ", and the known forms of its commands", Level: Advisory, OfTools: true, Next: "lockkeeper init " + name}
	before := st.Before()
	switch {
	case st.Fault != nil:
		w.Fact = lockkeeper.Message(st.Fault)
		w.Broken, w.Next = st.Enrolled, "fix that file, then run lockkeeper init "+name
	case before == nil && st.Enrolled:
		w.Broken, w.Fact = true, "its hook was removed: nothing is checked"
	case before == nil && st.Unknown != "":
		w.Fact = st.Unknown
	case before == nil && st.Program == "":
		return nil
	case before == nil:
		w.Fact = "it is installed, and has no hooks here"
	case st.Off != "":
		w.Broken, w.Fact, w.Next = true, "its hooks are disabled by "+st.Off, "remove that setting"
	case st.Stray != "":
		w.Broken, w.Fact, w.Next = true, "its hooks may start another program, or use other locks: "+st.Stray+" changes their environment", "remove that setting"
	case before.Doubt != "" && before.Differs == "": // a difference is reported below, because it must be fixed first
		w.Broken, w.Fact, w.Next = true, before.Doubt, "fix that file, or move the unknown settings to another file of "+name+"'s settings"
	default:
		return hookedProtections(ctx, site, st, w, seen)
	}
	return []Protection{w}
}

// hookedProtections returns the protections of a program that has our hook.
func hookedProtections(ctx context.Context, site enrol.Site, st enrol.Status, w Protection, seen func() (bool, error)) []Protection {
	name, before := st.Host.Name, *st.Before()
	wrong, err := site.Responds(ctx, before)
	switch {
	case err != nil:
		w.Broken, w.Fact = true, err.Error()
	case wrong != "":
		w.Broken, w.Fact, w.Next = true, wrong, "install lockkeeper where "+name+" finds it, then lockkeeper init "+name
	case before.Differs != "":
		w.Broken, w.Fact = true, "its hook ("+before.File+") differs from what init writes, so writes may go unchecked: "+before.Differs
	default:
		w.Level, w.Fact, w.Next = Enforced, "its hook ("+before.File+") refuses writes to files that others hold", ""
	}
	if w.Level == Enforced && st.NeedsTrust() {
		if there, err := seen(); err != nil {
			w.Level, w.Fact = Advisory, err.Error()
		} else if !there {
			w.Level, w.Fact, w.Next = Advisory, name+" runs its hook only once you have trusted it, and no session has reported", st.Host.Trust
		}
	}
	list := []Protection{w, commandsOf(ctx, site, st, w), belowOf(ctx, site, st)}
	if w.Level == Enforced && len(st.Others) > 0 {
		list = append(list, otherHooks(st))
	}
	return list
}

// belowOf returns the protection of sessions that start in a subdirectory. It runs the hook
// that such a session finds, in a subdirectory.
func belowOf(ctx context.Context, site enrol.Site, st enrol.Status) Protection {
	name := st.Host.Name
	w := Protection{Writer: name, Name: "sessions of " + name + " that start in a subdirectory", Level: Advisory, Below: true, Next: "lockkeeper init " + name}
	if lacks := st.Below(); lacks != nil {
		w.Fact = "they find no settings of the project, and the user's settings lack the hooks of Lockkeeper for " + strings.Join(lacks, ", ")
		return w
	}
	hook := st.Anywhere()
	if hook == nil {
		w.Fact = "the hook that they find does not work"
		return w
	}
	wrong, err := site.RespondsBelow(ctx, *hook)
	if err != nil {
		wrong = err.Error()
	}
	if wrong != "" {
		w.Broken, w.Fact = true, wrong
		return w
	}
	w.Level, w.Fact, w.Next = Enforced, "they find its hook in "+hook.File, ""
	return w
}

// otherHooks warns of other hooks that can change a tool's input after our hook saw it.
func otherHooks(st enrol.Status) Protection {
	var list []string
	for _, k := range st.Others {
		one := k.Event + " in " + k.File
		if k.Command != "" {
			one += " (" + k.Command + ")"
		}
		list = append(list, one)
	}
	return Protection{Writer: st.Host.Name, Name: "tool calls of " + st.Host.Name + " that other hooks change", Level: Detected, OfTools: true,
		Fact: strings.Join(list, "; ") + ": after the check by Lockkeeper, such a hook can change which file is written; a session that holds that file learns of it with its next call",
		Next: "check that none of these hooks changes the input of a tool, and remove those that do"}
}

// commandsOf returns the protection against programs that an agent's commands run, given
// the protection of its tools.
func commandsOf(ctx context.Context, site enrol.Site, st enrol.Status, tools Protection) Protection {
	name := st.Host.Name
	w := Protection{Writer: name, Name: "other programs that commands of " + name + " run", Level: Advisory, Next: tools.Next}
	if tools.Level != Enforced {
		w.Fact = "files are not compared while its hook does not run"
		return w
	}
	lacks, next := st.Lacking(), "lockkeeper init "+name
	if lacks == nil {
		var err error
		if lacks, err = site.Dead(ctx, st); err != nil {
			lacks = []string{err.Error()}
		}
		next = "install lockkeeper where " + name + " finds it, then " + next
	}
	if lacks != nil {
		w.Broken, w.Fact, w.Next = true, "its hooks are not complete: "+strings.Join(lacks, "; "), next
		return w
	}
	w.Level, w.Fact, w.Next = Detected, "files that others hold are compared after each command; a change is kept and shown", ""
	return w
}
