package view

import (
	"context"
	"strings"

	"lockkeeper"

	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/session"
)

// hostWays says what keeps interactive agents from writing over others: those that are
// installed, and those that were enrolled here.
func (l *Look) hostWays(ctx context.Context) (list []Way) {
	site := enrol.At(l.app.Root.Dir(), l.app.Env)
	for _, h := range enrol.Hosts() {
		list = append(list, HostWays(ctx, site, site.Status(h), func() (bool, error) { return reported(ctx, session.Open(l.app), h) })...)
	}
	return list
}

// reported says whether a session of a host sits here.
func reported(ctx context.Context, registry *session.Registry, h enrol.Host) (bool, error) {
	live, err := registry.Live(ctx)
	for _, s := range live {
		if s.Agent == h.Hook {
			return true, err
		}
	}
	return false, err
}

// HostWays says what is done about the writes of one host; nothing of one that is neither
// installed nor enrolled. Its hook is tried with a call that touches nothing. seen tells
// whether a session of the host has reported, for those that run hooks only once a person
// has trusted them.
func HostWays(ctx context.Context, site enrol.Site, st enrol.Status, seen func() (bool, error)) []Way {
	name := st.Host.Name
	w := Way{Writer: name, Name: "tools of " + name + ", and the known forms of its commands", Level: Advisory, OfTools: true, Next: "lockkeeper init " + name}
	before := st.Before()
	switch {
	case st.Fault != nil:
		w.Fact = lockkeeper.Message(st.Fault)
		w.Broken, w.Next = st.Enrolled, "mend that file, then lockkeeper init "+name
	case before == nil && st.Enrolled:
		w.Broken, w.Fact = true, "its hook was removed: nothing is checked"
	case before == nil && st.Unknown != "":
		w.Fact = st.Unknown
	case before == nil && st.Program == "":
		return nil
	case before == nil:
		w.Fact = "it is installed, and has no hooks here"
	case st.Off != "":
		w.Broken, w.Fact, w.Next = true, "it does not run our hooks: "+st.Off+" says so", "take that setting out"
	case st.Stray != "":
		w.Broken, w.Fact, w.Next = true, "its hooks may start another program, or use other locks: "+st.Stray+" changes their environment", "take that setting out"
	case before.Doubt != "" && before.Differs == "": // what differs is mended first
		w.Broken, w.Fact, w.Next = true, before.Doubt, "mend that file, or move what is not known into another file of "+name+"'s settings"
	default:
		return hookedWays(ctx, site, st, w, seen)
	}
	return []Way{w}
}

// hookedWays are those of a host that has our hook.
func hookedWays(ctx context.Context, site enrol.Site, st enrol.Status, w Way, seen func() (bool, error)) []Way {
	name, before := st.Host.Name, *st.Before()
	wrong, err := site.Responds(ctx, before)
	switch {
	case err != nil:
		w.Broken, w.Fact = true, err.Error()
	case wrong != "":
		w.Broken, w.Fact, w.Next = true, wrong, "install lockkeeper where "+name+" finds it, then lockkeeper init "+name
	case before.Differs != "":
		w.Broken, w.Fact = true, "its hook ("+before.File+") differs from what init writes, so that writes may go unchecked: "+before.Differs
	default:
		w.Level, w.Fact, w.Next = Enforced, "its hook ("+before.File+") refuses what others hold", ""
	}
	if w.Level == Enforced && st.Host.Trust != "" {
		if there, err := seen(); err != nil {
			w.Level, w.Fact = Advisory, err.Error()
		} else if !there {
			w.Level, w.Fact, w.Next = Advisory, "its hook is there, and "+name+" runs it once you have trusted it, and skips it silently until then; no session has reported", st.Host.Trust
		}
	}
	list := []Way{w, commandsOf(ctx, site, st, w)}
	if w.Level == Enforced && len(st.Others) > 0 {
		list = append(list, changedWay(st))
	}
	return list
}

// changedWay names the hooks of others that may change what a host's tools write: ours is
// shown what the model asked for, and not what they make of it.
func changedWay(st enrol.Status) Way {
	var list []string
	for _, k := range st.Others {
		one := k.Event + " in " + k.File
		if k.Command != "" {
			one += " (" + k.Command + ")"
		}
		list = append(list, one)
	}
	return Way{Writer: st.Host.Name, Name: "calls of " + st.Host.Name + " that hooks of others change", Level: Detected, OfTools: true,
		Fact: "such a hook may have another file written than ours was asked about, which a session that holds it is told with its next call: " + strings.Join(list, "; "),
		Next: "see that none of them answers with another input, or take it out"}
}

// commandsOf says what is done about other programs that a host's commands run, where its
// tools are handled in this way.
func commandsOf(ctx context.Context, site enrol.Site, st enrol.Status, tools Way) Way {
	name := st.Host.Name
	w := Way{Writer: name, Name: "other programs that commands of " + name + " run", Level: Advisory, Next: tools.Next}
	if tools.Level != Enforced {
		w.Fact = "nothing is compared while its hook does not run"
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
	w.Level, w.Fact, w.Next = Detected, "what others hold is compared after each command, and a change is kept and shown", ""
	return w
}
