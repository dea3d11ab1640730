package doctor

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/view"
)

// A RunningAgent is an interactive agent that runs now.
type RunningAgent struct {
	Program string `json:"program"`
	PID     int    `json:"pid"`
	TTY     string `json:"tty,omitempty"`
}

func (w RunningAgent) where() string {
	if w.TTY != "" {
		return w.TTY
	}
	return fmt.Sprintf("process %d", w.PID)
}

// running lists the agents that work here and should run our hooks.
func (x *examination) running() ([]process.Running, error) {
	var names []string
	for _, st := range x.hosts {
		if st.Before() != nil {
			names = append(names, st.Host.Program)
		}
	}
	if names == nil {
		return nil, nil
	}
	all, err := process.Named(names...)
	return slices.DeleteFunc(all, func(r process.Running) bool {
		return r.Dir != x.site.Root && !strings.HasPrefix(r.Dir, x.site.Root+string(filepath.Separator))
	}), err
}

// silent lists the agents that have not reported, mostly because they were started before
// the hooks were installed.
func silent(running []process.Running, live []session.Info) []RunningAgent {
	list := []RunningAgent{}
	for _, r := range running {
		heard := slices.ContainsFunc(live, func(s session.Info) bool {
			return s.Process != nil && s.Process.PID == r.PID && s.Process.Start == r.Start && s.Process.Boot == r.Boot
		})
		if !heard {
			list = append(list, agentOf(r))
		}
	}
	return list
}

func agentOf(r process.Running) RunningAgent {
	return RunningAgent{Program: r.Program, PID: r.PID, TTY: r.TTY}
}

// notReported lists the agents that must be restarted.
func notReported(list []RunningAgent) string {
	var programs, parts []string
	where := map[string][]string{}
	for _, w := range list {
		if where[w.Program] == nil {
			programs = append(programs, w.Program)
		}
		where[w.Program] = append(where[w.Program], w.where())
	}
	for _, program := range programs {
		count, verb := "1 running "+program+" process", "has"
		if n := len(where[program]); n > 1 {
			count, verb = fmt.Sprintf("%d running %s processes", n, program), "have"
		}
		parts = append(parts, fmt.Sprintf("%s %s not reported: restart %s", count, verb, strings.Join(where[program], ", ")))
	}
	return strings.Join(parts, " · ")
}

// summary returns the levels of all interactive agents in one line.
func (x *examination) summary() string {
	levels := []string{view.Enforced, view.Detected, view.Advisory, "broken"}
	var parts []string
	worst := x.toolLevels(levels)
	for i, level := range levels {
		var hosts []string
		for _, st := range x.hosts {
			if at, said := worst[st.Host.Name]; !said || at != i {
				continue
			}
			name := st.Host.Name
			if level == view.Enforced {
				name += " (hook)"
			}
			hosts = append(hosts, name)
		}
		if hosts != nil {
			parts = append(parts, level+": "+strings.Join(hosts, ", "))
		}
	}
	if len(x.report.Silent) > 0 {
		parts = append(parts, notReported(x.report.Silent))
	}
	if parts == nil {
		return "no interactive agent is installed or enrolled"
	}
	return strings.Join(parts, " · ")
}

// toolLevels returns the worst level of each agent's tools, as an index into levels.
func (x *examination) toolLevels(levels []string) map[string]int {
	worst := map[string]int{}
	for _, w := range x.report.Protections {
		if !w.OfTools {
			continue
		}
		level := w.Level
		if w.Broken {
			level = "broken"
		}
		worst[w.Writer] = max(worst[w.Writer], slices.Index(levels, level))
	}
	return worst
}

// apart finds running agents that were started in another environment than this command, if
// their hooks do not work there or use another store. It skips agents whose environment
// cannot be read.
func (x *examination) apart(ctx context.Context, running []process.Running) {
	for _, r := range running {
		if r.Env == nil {
			continue
		}
		there := x.site
		there.Env = func(name string) (string, bool) {
			for _, v := range r.Env {
				if value, is := strings.CutPrefix(v, name+"="); is {
					return value, true
				}
			}
			return "", false
		}
		for _, st := range x.hosts {
			if st.Host.Program != r.Program {
				continue
			}
			if wrong := x.wrongThere(ctx, there, st); wrong != "" {
				x.failed = true
				x.note("sessions", false, fmt.Sprintf("%s (%s) was started in another environment: %s", r.Program, agentOf(r).where(), wrong), "restart it in a shell where lockkeeper doctor reports no problem")
			}
		}
	}
}

// wrongThere returns the problem with a host's hooks in an environment, or "" if there is none.
func (x *examination) wrongThere(ctx context.Context, there enrol.Site, st enrol.Status) string {
	store := func(s enrol.Site) string { v, _ := s.Env("LOCKKEEPER_STORE"); return v }
	state := func(s enrol.Site) string {
		own, _ := s.Env("XDG_STATE_HOME")
		home, _ := s.Env("HOME")
		return cmp.Or(own, home)
	}
	if store(there) != store(x.site) || state(there) != state(x.site) {
		return "its hooks may use other locks (LOCKKEEPER_STORE, XDG_STATE_HOME or HOME differs)"
	}
	ours, _ := x.site.Env("PATH")
	if path, _ := there.Env("PATH"); path == ours {
		return "" // hooks work in the other copy as they do here
	}
	wrong, err := there.Responds(ctx, *st.Before())
	if err == nil && wrong == "" {
		var dead []string
		dead, err = there.Dead(ctx, st)
		wrong = strings.Join(dead, "; ")
	}
	if err != nil {
		return err.Error()
	}
	return wrong
}
