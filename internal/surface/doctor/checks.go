package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/session"
	"lockkeeper/store"
)

// busyAfter is how long the store may take to give a lock.
const busyAfter = 5 * time.Second

// drift is how far two clocks may be apart.
const drift = 2 * time.Second

// store takes a lock and gives it back, and looks at the clocks.
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
		err = &lockkeeper.StoreError{Store: config.Redact(x.app.Config.Store), Reason: "no lock was given within " + busyAfter.String() + ": somebody keeps it busy", Next: "see who uses it: fuser " + config.Redact(x.app.Config.Store)}
	}
	if err != nil {
		x.fail("store", err)
		return
	}
	x.note("store", true, fmt.Sprintf("%s: a lock was taken and given back in %s", config.Redact(x.app.Config.Store), time.Since(began).Round(100*time.Microsecond)), "")
	x.clock(ctx)
}

// clock holds that of the store, and the last event, against this machine's.
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
		x.note("clock", false, fmt.Sprintf("the store's clock and this machine's are %s apart; leases follow the store's", ahead.Abs().Round(time.Millisecond)), "set both by NTP")
	case late > drift:
		x.note("clock", false, fmt.Sprintf("the last event is %s in the future: the clock was set back; leases do not follow it", late.Round(time.Second)), "set it by NTP")
	default:
		x.note("clock", true, "it agrees with the store's", "")
	}
}

// leftovers are what crashes left behind.
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
		x.note(name, false, "writes are on their way in .lockkeeper/stage, or a crash left them there, or what is kept is over its time", "lockkeeper gate recover")
	}
	unfinished, err := x.app.Unfinished(ctx)
	if err != nil {
		x.trouble(name, err)
	}
	for _, l := range unfinished {
		x.note(name, false, fmt.Sprintf("landing %d of %s, decided at %s, is neither done nor rolled back", l.Seq, l.Holder, l.At.Format(time.DateTime)), "lockkeeper gate recover, which says what it waits for")
	}
	if n := len(copies); n > 0 {
		x.note(name, false, fmt.Sprintf("%d copies of the codebase are in use by nobody, the oldest since %s: %s", n, copies[0].Made.Format(time.DateTime), x.app.WorkspacesDir()), "lockkeeper run, which takes up or removes them")
	}
	if !stages && len(copies) == 0 {
		x.note(name, true, "no stage and no copy is left behind", "")
	}
}

// sessions looks whether interactive agents are checked at all, and which run unchecked.
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
		x.note(name, false, fmt.Sprintf("%s switched the checks of interactive agents off until %s", pause.By, pause.Until.Format(time.TimeOnly)), "lockkeeper off --end")
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
		x.note(name, false, notReported(x.report.Silent), "end them and start them anew: hosts read their hooks when they start")
	default:
		x.note(name, true, fmt.Sprintf("%d at work; no running agent that has hooks here has failed to report", len(live)), "")
	}
}

// machine looks at what needs no open codebase.
func (x *examination) machine(ctx context.Context) {
	cfg, err := project.LoadConfig(x.settings)
	if err != nil {
		x.fail("configuration", err)
	} else {
		x.note("configuration", true, config.FileName+" is understood", "")
		x.fileSystem(filepath.Join(x.site.Root, ".lockkeeper"), !config.IsPostgres(cfg.Store))
	}
	x.commands()
	x.shelf(filepath.Join(x.site.Root, ".lockkeeper", "rescue"))
	x.versions(ctx)
}

// commands reports by what means this machine ends everything that a command started.
func (x *examination) commands() {
	const name, page = "commands", "see docs/safety.md, What a command leaves running"
	switch process.Tracking() {
	case process.TrackCgroup:
		x.note(name, true, "each command runs in its own control group, which the kernel kills as a whole", "")
	case process.TrackKeeper:
		x.note(name, true, "control groups are not available; each command has a keeper process, which ends everything that the command leaves running", "")
	default:
		x.note(name, false, "on this system only the command itself is ended, not the daemons that it starts", page)
	}
}

// versions says which programs are at work, and whether hosts start another one of ours.
func (x *examination) versions(ctx context.Context) {
	const name = "versions"
	own := "lockkeeper " + project.Version()
	if git, err := exec.CommandContext(ctx, "git", "--version").Output(); err != nil {
		x.note(name, false, own+"; git cannot be run: "+err.Error(), "install git where PATH leads to it: commits are not looked at without, and runs need it")
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

// inPath says which of our programs PATH leads to, where that is not one of each at most.
func (x *examination) inPath() {
	const name = "versions"
	for _, program := range []string{"lockkeeper", "lockkeeper-hook"} {
		switch found := x.site.InPath(program); {
		case len(found) > 1:
			x.note(name, false, "there are several in PATH, of which the first counts: "+strings.Join(found, ", "), "remove all but one")
		case len(found) == 0 && program == "lockkeeper":
			x.note(name, false, "lockkeeper is not in PATH, where agents are told to find it", "install it in a directory of PATH")
		}
	}
	attributes, err := os.ReadFile(filepath.Join(x.site.Root, ".gitattributes"))
	if err == nil && strings.Contains(string(attributes), "filter=lfs") && len(x.site.InPath("git-lfs")) == 0 {
		x.note(name, false, ".gitattributes has files that git-lfs keeps, and git-lfs is not in PATH", "install git-lfs")
	}
}

// shelf tries whether what is refused can be kept. A shelf that is not there is made when it
// is needed.
func (x *examination) shelf(dir string) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := probeFile(dir, func(string) error { return nil }); err != nil {
		x.failed = true
		x.note("shelf", false, dir+" cannot be written, so that what is refused would be lost: "+err.Error(), writable(dir, err))
	}
}

// writable says what to do about a directory that cannot be written.
func writable(dir string, err error) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return "make room on the disk of " + dir
	}
	return "make " + dir + " a directory that you may write"
}

// probeFile creates a private file, passes it on and removes it.
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
