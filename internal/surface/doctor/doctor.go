package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/view"
)

// A Report lists the checks and their findings.
type Report struct {
	Root        string            `json:"root"`
	OK          bool              `json:"ok"`   // everything that should be enforced is enforced
	Protections []view.Protection `json:"ways"` // protection of each way to write
	Checks      []view.Check      `json:"checks"`
	Silent      []RunningAgent    `json:"not_reported"` // running agents whose hooks have not reported
	Summary     string            `json:"summary"`
}

// An examination is one run of the doctor.
type examination struct {
	settings project.Settings
	site     enrol.Site
	app      *project.Project // nil: not opened
	hosts    []enrol.Status
	report   *Report
	failed   bool // something that should be enforced is not
}

// whole is the time limit of an examination.
const whole = 2 * time.Minute

// Examine checks the codebase in which a command runs.
func Examine(ctx context.Context, s project.Settings) (_ *Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	s.SkipRecovery = true // the report shows what a crash left
	root, err := project.FindRoot(s)
	site := enrol.At(root, s.Env)
	if err != nil {
		_, gone := project.RootOf(filepath.Join(s.Dir, lockkeeper.GitTarget), s.Env) // RootOf also knows codebases whose locks are gone
		return nil, cmp.Or(gone, err)
	}
	x := &examination{settings: s, site: site, report: &Report{Root: site.Root, Protections: []view.Protection{}, Checks: []view.Check{}, Silent: []RunningAgent{}}}
	for _, h := range enrol.Hosts() {
		x.hosts = append(x.hosts, site.Status(h))
	}
	a, err := project.Open(ctx, s)
	if err != nil {
		x.unopened(ctx, err)
	} else {
		x.app = a
		x.opened(ctx)
		if err := a.Close(); err != nil {
			x.fail("store", err)
		}
	}
	x.machine(ctx)
	x.report.OK = !x.failed && len(x.report.Silent) == 0 && !slices.ContainsFunc(x.report.Protections, func(w view.Protection) bool { return w.Broken })
	x.report.Summary = x.summary()
	return x.report, nil
}

// testLimit is how long TryTests lets the tests run.
const testLimit = 2 * time.Minute

// TryTests adds a check that runs the configured test command once, on the unchanged tree and in
// the sandbox of a run. It adds nothing if no command is configured, or if the codebase cannot be
// opened, which Examine reports. A failed test breaks no protection.
func (r *Report) TryTests(ctx context.Context, s project.Settings, env []string, began func(commands []string)) (err error) {
	const name = "tests"
	s.SkipRecovery = true
	a, err := project.Open(ctx, s)
	if err != nil {
		return nil // Examine reported it
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	t, err := conduct.TryTests(ctx, a, env, testLimit, began)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		r.Checks = append(r.Checks, view.Check{Name: name, Fact: lockkeeper.Message(err), Next: lockkeeper.NextStep(err)})
	case t != nil:
		c := view.Check{Name: name, OK: t.Passed || t.Skipped != "", Fact: t.String(), Next: t.Next}
		if t.TooLong {
			c.Next = "lockkeeper run --dry-run, which lets the tests run for run.check_timeout"
		}
		if len(t.Last) > 0 {
			c.Fact += "; it ended with: " + strings.Join(t.Last, " | ")
		}
		r.Checks = append(r.Checks, c)
		if t.Skipped == "" {
			r.Checks = append(r.Checks, cachesCheck(t))
		}
	}
	return nil
}

// cachesCheck says whether the caches of tools work in the sandbox.
func cachesCheck(t *run.Trial) view.Check {
	if len(t.ReadOnly) > 0 {
		return view.Check{Name: "caches", Fact: "commands in the sandbox cannot write " + strings.Join(t.ReadOnly, ", "),
			Next: "set agent.caches in lockkeeper.yaml to directories that only this codebase uses, or enable overlays in user namespaces"}
	}
	c := view.Check{Name: "caches", OK: true, Fact: "writable in the sandbox"}
	switch {
	case t.NotKept != "":
		c.Fact += "; nothing in them is kept: " + t.NotKept
	case t.Kept > 0:
		c.Fact += fmt.Sprintf("; %.1f MB that the tests added are kept for the tests of runs", float64(t.Kept)/1e6)
	}
	return c
}

// unopened runs the checks that need no store. Hooks refuse every write meanwhile.
func (x *examination) unopened(ctx context.Context, err error) {
	x.fail("store", err)
	for _, st := range x.hosts {
		x.report.Protections = append(x.report.Protections, view.HookProtections(ctx, x.site, st, func() (bool, error) { return false, nil })...)
	}
	x.untried()
}

// untried marks as broken every protection that could not be tried.
func (x *examination) untried() {
	for i := range x.report.Protections {
		if w := &x.report.Protections[i]; w.Level != view.Advisory {
			w.Level, w.Broken, w.Fact, w.Next = view.Advisory, true, "not tried without the store: "+w.Fact, "fix the store first: see the check store below"
		}
	}
}

// opened runs the checks of an open codebase.
func (x *examination) opened(ctx context.Context) {
	nodes, err := view.New(x.app).Nodes(ctx)
	if err != nil {
		x.unopened(ctx, err)
		return
	}
	x.report.Protections = nodes.Enforcement.Protections
	for _, c := range nodes.Checks {
		if c.Name != "recovery" { // the check recovery is skipped, because leftovers reports more
			x.report.Checks = append(x.report.Checks, c)
		}
	}
	if x.store(ctx); !x.failed { // otherwise each trial would time out
		x.try(ctx)
	} else {
		x.untried()
	}
	x.leftovers(ctx)
	x.queue(ctx)
	x.workspaces(ctx)
	x.sessions(ctx)
}

func (x *examination) note(name string, ok bool, fact, next string) {
	x.report.Checks = append(x.report.Checks, view.Check{Name: name, OK: ok, Fact: fact, Next: next})
}

// fail adds a failure that breaks enforcement.
func (x *examination) fail(name string, err error) {
	x.failed = true
	x.trouble(name, err)
}

// trouble adds a check that could not run.
func (x *examination) trouble(name string, err error) {
	x.note(name, false, lockkeeper.Message(err), lockkeeper.NextStep(err))
}
