package view

import (
	"context"
	"strings"

	"lockkeeper"

	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/session"
)

// hookProtections returns the protections of every interactive agent that is installed or
// enrolled here.
func (rd *Reader) hookProtections(ctx context.Context) (list []Protection) {
	site := enrol.At(rd.project.Root.Dir(), rd.project.Env)
	for _, h := range enrol.Hosts() {
		list = append(list, HookProtections(ctx, site, site.Status(h), func() (bool, error) { return reported(ctx, session.Open(rd.project), h) })...)
	}
	return list
}

// reported reports whether a session of a host is live here.
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
	case before.Doubt != "" && before.Differs == "": // a difference is fixed first
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
	if w.Level == Enforced && st.Host.Trust != "" {
		if there, err := seen(); err != nil {
			w.Level, w.Fact = Advisory, err.Error()
		} else if !there {
			w.Level, w.Fact, w.Next = Advisory, name+" runs its hook only once you have trusted it, and no session has reported", st.Host.Trust
		}
	}
	list := []Protection{w, commandsOf(ctx, site, st, w)}
	if w.Level == Enforced && len(st.Others) > 0 {
		list = append(list, otherHooks(st))
	}
	return list
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
		Fact: "such a hook can change which file is written after our hook has checked it; the session that holds that file is told with its next call: " + strings.Join(list, "; "),
		Next: "check that none of these hooks changes the input of a tool, or remove it"}
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
