package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/job"
	"lockkeeper/internal/machine/overlay"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/session"
	"lockkeeper/store"
)

// busyAfter is how long the store may take to grant a lock.
const busyAfter = 5 * time.Second

const drift = 2 * time.Second

// store acquires and releases a lock, and compares the clocks.
func (x *examination) store(ctx context.Context) {
	brief, cancel := context.WithTimeout(ctx, busyAfter)
	defer cancel()
	began := time.Now()
	lock := lockkeeper.Lock{Target: lockkeeper.Target{Path: ".lockkeeper/doctor", Kind: lockkeeper.Node}, Mode: lockkeeper.Read}
	grant, err := x.app.Acquire(brief, lockkeeper.Request{Holder: holder, Locks: []lockkeeper.Lock{lock}, TTL: time.Minute}, 0)
	if err == nil {
		_, err = x.app.Release(brief, grant.ID)
	}
	if brief.Err() != nil {
		err = &lockkeeper.StoreError{Store: config.Redact(x.app.Config.Store), Reason: "granted no lock within " + busyAfter.String() + ": another process keeps it busy", Next: "fuser " + config.Redact(x.app.Config.Store)}
	}
	if err != nil {
		x.fail("store", err)
		return
	}
	x.note("store", true, fmt.Sprintf("%s: acquired and released a lock in %s", config.Redact(x.app.Config.Store), time.Since(began).Round(100*time.Microsecond)), "")
	x.clock(ctx)
}

// clock compares the clock of the store, and the last event, with the clock of this machine.
func (x *examination) clock(ctx context.Context) {
	var ahead, late time.Duration
	err := x.app.Store.View(ctx, func(r store.Reader) error {
		ahead = time.Until(r.Now().Wall)
		last, err := r.Events(store.EventQuery{Limit: 1, Latest: true})
		if len(last) > 0 {
			late = last[0].At.Sub(r.Now().Wall)
		}
		return err
	})
	switch {
	case err != nil:
		x.trouble("clock", err)
	case ahead.Abs() > drift:
		x.note("clock", false, fmt.Sprintf("the clocks of the store and of this machine differ by %s; leases follow the store", ahead.Abs().Round(time.Millisecond)), "synchronize both with NTP")
	case late > drift:
		x.note("clock", false, fmt.Sprintf("the last event is %s in the future: the clock was set back; leases do not follow it", late.Round(time.Second)), "synchronize it with NTP")
	default:
		x.note("clock", true, "agrees with the store", "")
	}
}

// leftovers looks for leftovers of crashed processes.
func (x *examination) leftovers(ctx context.Context) {
	const name = "leftovers"
	stages, err := gate.MayNeedRecovery(x.site.Root, x.app.Config.Gate.Keep)
	if err != nil {
		x.trouble(name, err)
	}
	copies, err := workspace.Abandoned(ctx, x.app.WorkspacesDir())
	if err != nil {
		x.trouble(name, err)
	}
	if stages {
		x.note(name, false, "a landing is in progress or was left by a crash in .lockkeeper/stage, or kept originals have expired", "lockkeeper gate recover")
	}
	unfinished, err := x.app.Unfinished(ctx)
	if err != nil {
		x.trouble(name, err)
	}
	for _, l := range unfinished {
		x.note(name, false, fmt.Sprintf("landing %d of %s, decided at %s, is neither complete nor rolled back", l.Seq, l.Holder, l.At.UTC().Format(time.RFC3339)), "lockkeeper gate recover")
	}
	if n := len(copies); n > 0 {
		x.note(name, false, fmt.Sprintf("%d workspaces are abandoned, the oldest since %s: %s", n, copies[0].Made.UTC().Format(time.RFC3339), x.app.WorkspacesDir()), "lockkeeper run, which reuses or removes them")
	}
	if !stages && len(copies) == 0 {
		x.note(name, true, "no stage or workspace is left behind", "")
	}
}

// stillAfter is the time between two reads of the queue. A free slot takes ready work much sooner.
const stillAfter = time.Second

// queue looks for queued items that could start and do not.
func (x *examination) queue(ctx context.Context) {
	const name = "queue"
	q, err := job.Open(x.app)
	if err != nil {
		x.trouble(name, err)
		return
	}
	still, err := q.Stalled(ctx)
	if err == nil && len(still) > 0 {
		select {
		case <-time.After(stillAfter):
		case <-ctx.Done():
		}
		var again []*lockkeeper.Item
		again, err = q.Stalled(ctx)
		still = slices.DeleteFunc(still, func(it *lockkeeper.Item) bool {
			return !slices.ContainsFunc(again, func(now *lockkeeper.Item) bool { return now.ID == it.ID && now.Attempts == it.Attempts })
		})
	}
	switch {
	case err != nil:
		x.trouble(name, err)
	case len(still) > 0:
		x.note(name, false, fmt.Sprintf("%s (%s) and %d more could start, but an idle worker does not start them", still[0].ID, still[0].Workflow, len(still)-1), "lockkeeper why "+still[0].ID)
	default:
		x.note(name, true, "no slot is free while work could start", "")
	}
}

// workspaces says how agents of a run get their view of the codebase.
func (x *examination) workspaces(ctx context.Context) {
	const name = "workspaces"
	_, level, err := conduct.SandboxLevel(ctx, x.app)
	if err != nil {
		x.trouble(name, err)
		return
	}
	why := errors.New("the sandbox here cannot mount")
	switch {
	case !level.Overlays():
	case !sandbox.RenamesLower():
		why = errors.New("directories could not be renamed in them before Linux 5.19")
	default:
		if why = os.MkdirAll(x.app.WorkspacesDir(), 0o700); why == nil {
			why = overlay.Probe(ctx, x.app.WorkspacesDir())
		}
	}
	if why != nil {
		x.note(name, true, fmt.Sprintf("a run copies the codebase for each agent in %s, because overlays do not work: %v", x.app.WorkspacesDir(), why),
			"set run.workspaces to a directory on a disk of its own, if this one does not support them")
		return
	}
	said := "a run copies the codebase once, and each agent sees it with its own changes (overlay)"
	base, made, err := workspace.Kept(x.app.WorkspacesDir())
	switch {
	case err != nil:
		x.trouble(name, err)
	case base != "":
		said += fmt.Sprintf("; the copy of %s stays for the next run, which brings it up to date: %s", made.UTC().Format(time.RFC3339), base)
	default:
		said += ", in " + x.app.WorkspacesDir()
	}
	x.note(name, true, said, "")
}

// sessions reports whether checks of interactive agents are on, and which agents run
// unchecked.
func (x *examination) sessions(ctx context.Context) {
	const name = "sessions"
	registry := session.Open(x.app)
	pause, err := registry.Off(ctx)
	if err != nil {
		x.trouble(name, err)
		return
	}
	if pause != nil {
		x.failed = true
		x.note(name, false, fmt.Sprintf("%s disabled the checks of interactive agents until %s", pause.By, pause.Until.UTC().Format(time.RFC3339)), "lockkeeper off --end")
	}
	live, err := registry.Live(ctx)
	if err == nil {
		var running []process.Running
		running, err = x.running()
		x.report.Silent = silent(running, live)
		x.apart(ctx, running)
	}
	switch {
	case err != nil:
		x.trouble(name, err)
	case len(x.report.Silent) > 0:
		x.note(name, false, notReported(x.report.Silent), "restart them: agents read their hooks when they start")
	default:
		x.note(name, true, fmt.Sprintf("%d active; every running agent with hooks has reported", len(live)), "")
	}
}

// machine runs the checks that need no open codebase.
func (x *examination) machine(ctx context.Context) {
	cfg, err := project.LoadConfig(x.settings)
	if err != nil {
		x.fail("configuration", err)
	} else {
		x.note("configuration", true, config.FileName+" is valid", "")
		x.fileSystem(filepath.Join(x.site.Root, ".lockkeeper"), !config.IsPostgres(cfg.Store))
	}
	x.commands()
	x.shelf(filepath.Join(x.site.Root, ".lockkeeper", "rescue"))
	x.versions(ctx)
}

// commands reports how this machine ends all processes that a command started.
func (x *examination) commands() {
	how := "control groups are not available; each command has a keeper process, which ends everything that the command leaves running"
	if process.HasControlGroups() {
		how = "each command runs in its own control group, which the kernel kills as a whole"
	}
	x.note("commands", true, how, "")
}

// versions reports the versions of the programs, and hooks that start another version.
func (x *examination) versions(ctx context.Context) {
	const name = "versions"
	own := "lockkeeper " + project.Version()
	if git, err := exec.CommandContext(ctx, "git", "--version").Output(); err != nil {
		x.note(name, false, own+"; cannot run git: "+err.Error(), "install git in a directory of PATH: runs and commits need it")
	} else {
		x.note(name, true, own+"; "+strings.TrimSpace(string(git)), "")
	}
	x.inPath()
	for _, st := range x.hosts {
		programs, err := x.site.Programs(ctx, st)
		if err != nil {
			x.trouble(name, err)
		}
		for _, other := range programs {
			if program, version, _ := strings.Cut(other, " "); !strings.HasPrefix(program, "lockkeeper") || version != project.Version() {
				x.note(name, false, "hooks of "+st.Host.Name+" do not start this version: "+other, "install one version of lockkeeper and lockkeeper-hook, in PATH")
			}
		}
	}
}

// inPath reports programs of ours that are missing from PATH or in it more than once.
func (x *examination) inPath() {
	const name = "versions"
	for _, program := range []string{"lockkeeper", "lockkeeper-hook"} {
		switch found := x.site.InPath(program); {
		case len(found) > 1:
			x.note(name, false, "several in PATH, and the first is used: "+strings.Join(found, ", "), "remove all but one")
		case len(found) == 0 && program == "lockkeeper":
			x.note(name, false, "lockkeeper is not in PATH, where agents look for it", "install it in a directory of PATH")
		}
	}
	attributes, err := os.ReadFile(filepath.Join(x.site.Root, ".gitattributes"))
	if err == nil && strings.Contains(string(attributes), "filter=lfs") && len(x.site.InPath("git-lfs")) == 0 {
		x.note(name, false, ".gitattributes uses git-lfs, and git-lfs is not in PATH", "install git-lfs")
	}
}

// shelf checks that refused writes can be stored. A missing shelf is created when needed.
func (x *examination) shelf(dir string) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := probeFile(dir, func(string) error { return nil }); err != nil {
		x.failed = true
		x.note("shelf", false, dir+" is not writable, so refused writes would be lost: "+err.Error(), writable(dir, err))
	}
}

// writable returns the next step for a directory that is not writable.
func writable(dir string, err error) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return "free disk space for " + dir
	}
	return "make " + dir + " a directory that you can write to"
}

// probeFile creates a private file, calls use, and removes the file.
func probeFile(dir string, use func(name string) error) (err error) {
	f, err := os.CreateTemp(dir, "doctor-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	if _, err := f.WriteString("tried"); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return use(f.Name())
}
