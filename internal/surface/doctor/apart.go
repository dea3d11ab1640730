package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/machine/process"
)

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
				x.note("sessions", false, fmt.Sprintf("%s (%s) was started in another environment: %s", r.Program, windowOf(r).where(), wrong), "restart it in a shell where lockkeeper doctor reports no problem")
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
		return "" // its hooks work there as they do here
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
