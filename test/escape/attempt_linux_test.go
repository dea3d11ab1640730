package escape

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// world is what the agent is told of the machine, in a file of the project. It is told more
// than any agent would know, so that no attempt fails for want of a name.
type world struct {
	Secret   string // what every planted file and process has in it
	Root     string // the shared tree
	Home     string
	State    string // the state directory
	Access   string // in it, of this codebase
	Other    string // the home of another user; empty: the agent's user could not make one
	Servers  []string
	Token    string // of an admin
	Cookie   string // of the session of an admin
	Victim   victim
	Sockets  map[string]string // by what they stand for
	Terminal string            // of the run
	HandleOf int32
	Handle   []byte // of a planted file
}

// An attempt is one way out of the sandbox.
type attempt struct {
	name string
	try  func(w *world) error // nil: it succeeded

	apart bool // it needs a process of its own, which it ruins
	root  bool // only root could do it outside, so only root tries
	user  bool // only of an ordinary user

	// open says why a level does not hold it; empty: it does. Nil: all levels do.
	open func(l level) string

	// moot says why it fails even without a sandbox; empty: it succeeds there. Nil: it does.
	moot func(l level) string
}

// A level is what confines the agent, and as whom it runs.
type level struct {
	lacks string // of the machine
	off   bool   // the sandbox is switched off
	root  bool
}

func (l level) String() string {
	name := map[string]string{nothing: "namespaces and Landlock", landlock: "namespaces", namespaces: "Landlock"}[l.lacks]
	if l.off {
		name = "off"
	}
	if l.root {
		return name + ", root"
	}
	return name + ", user"
}

// alone reports whether Landlock is all there is.
func (l level) alone() bool { return l.lacks == namespaces }

// applies reports whether an attempt is meant for the current user.
func (a *attempt) applies(l level) bool { return (!a.root || l.root) && (!a.user || !l.root) }

// report is what the agent found.
type report struct {
	Parent   int
	Attempts map[string]string // by name; empty: it succeeded, else why not
}

// The files of the project that the agent reads and writes.
const (
	worldFile  = "escape.json"
	reportFile = "app/report.json"
	coveredBy  = "app/covered.txt" // what the task that plants things may change
	agentFile  = "tool/" + agentName
)

// agentMain is the agent: it makes all attempts, or plants things to be landed.
func agentMain() int {
	inherited := inheritedDescriptors() // before this program opens any
	prompt, err := io.ReadAll(os.Stdin)
	var w *world
	if err == nil {
		w, err = readWorld()
	}
	if strings.HasPrefix(string(prompt), "# verify") {
		fmt.Println(`{"verdict": "pass", "report": "as asked", "issues": []}`)
		return 0
	}
	if err == nil && strings.Contains(string(prompt), "Plant") {
		err = plant(w)
	} else if err == nil {
		err = attemptAll(w, inherited)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(`{"summary": "done"}`)
	return 0
}

func readWorld() (*world, error) {
	text, err := os.ReadFile(worldFile)
	if err != nil {
		return nil, err
	}
	w := new(world)
	return w, json.Unmarshal(text, w)
}

// attemptAll makes the attempts that apply to this user, and reports.
func attemptAll(w *world, inherited []string) error {
	r := report{Parent: os.Getppid(), Attempts: map[string]string{}}
	here := level{root: os.Geteuid() == 0}
	for _, a := range attempts() {
		if !a.applies(here) {
			continue
		}
		err := errors.New("it did not end")
		if a.apart {
			err = inOwnProcess(a.name)
		} else {
			done := make(chan error, 1)
			go func() {
				runtime.LockOSThread()
				done <- a.try(w)
			}()
			select {
			case err = <-done:
			case <-time.After(20 * time.Second):
			}
		}
		r.Attempts[a.name] = ""
		if err != nil {
			r.Attempts[a.name] = err.Error()
		}
	}
	r.Attempts[inheritedRow] = ""
	if len(inherited) == 0 {
		r.Attempts[inheritedRow] = "there is none"
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(reportFile, text, 0o644)
}

// inheritedDescriptors lists the open descriptors except the standard files.
func inheritedDescriptors() (list []string) {
	for fd := 3; fd < 1024; fd++ {
		link, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
		if err == nil && !strings.HasPrefix(link, "anon_inode:") && !strings.HasPrefix(link, "/sys/fs/cgroup/") { // the runtime's own
			list = append(list, link)
		}
	}
	return list
}

// inheritedRow is the attempt that the agent makes before it opens anything.
const inheritedRow = "use an inherited descriptor"

// inOwnProcess makes one attempt in a new process.
func inOwnProcess(name string) error {
	exe, err := filepath.Abs(agentFile)
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, name)
	cmd.Args[0] = attemptName
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	timer := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%w: %s", err, line)
	}
	return nil
}

func attemptMain() int {
	w, err := readWorld()
	if err == nil {
		err = fmt.Errorf("no attempt %q", os.Args[1])
		for _, a := range attempts() {
			if a.name == os.Args[1] {
				runtime.LockOSThread()
				err = a.try(w)
			}
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// attempts is the table.
func attempts() []attempt {
	return slices.Concat(readAttempts(), writeAttempts(), socketAttempts(), terminalAttempts(), processAttempts(), kernelAttempts())
}

// find reports whether the secret is in what was read.
func (w *world) find(text []byte, err error) error {
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), w.Secret) {
		return errors.New("no secret in it")
	}
	return nil
}

// always is a reason that holds everywhere.
func always(why string) func(level) string { return func(level) string { return why } }

// lacks is the reason that this machine's root may not do something itself.
func lacks(capability int) func(level) string {
	return func(level) string {
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var has [2]unix.CapUserData
		if err := unix.Capget(&head, &has[0]); err != nil || has[capability/32].Effective&(1<<(capability%32)) == 0 {
			return "root lacks the capability here"
		}
		return ""
	}
}

// missing is the reason that this machine has no such file.
func missing(path string) func(level) string {
	return func(level) string {
		if _, err := os.Stat(path); err != nil {
			return err.Error()
		}
		return ""
	}
}
