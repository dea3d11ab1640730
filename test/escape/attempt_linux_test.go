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

// A world describes the machine to the agent, in a file of the project. It contains more than
// any agent would know, so that no attempt fails because it lacks a name.
type world struct {
	Secret   string // the text in every planted file and process
	Root     string // the shared tree
	Home     string
	State    string // the state directory
	Access   string // the directory of this codebase in the state directory
	Other    string // the home of another user; empty if the agent's user cannot create one
	Servers  []string
	Token    string // token of an admin
	Cookie   string // session cookie of an admin
	Victim   victim
	Sockets  map[string]string // by the service that they imitate
	Terminal string            // terminal of the run
	HandleOf int32
	Handle   []byte // handle of a planted file
	MountsOf int32
	Mounts   []byte // handle of the victim's mount namespace
}

// An attempt is one way out of the sandbox.
type attempt struct {
	name string
	try  func(w *world) error // returns nil if it succeeded

	apart bool // needs its own process, which it ruins
	root  bool // only root could do it outside the sandbox, so only root tries
	user  bool // applies only to an ordinary user

	// open says why a level does not prevent the attempt, or "" if it does. If open is nil, all
	// levels prevent it.
	open func(l level) string

	// moot says why the attempt fails even without a sandbox, or "" if it succeeds there. If
	// moot is nil, it succeeds there.
	moot func(l level) string
}

// A level says how the agent is confined, and as which user it runs.
type level struct {
	lacks string // the feature that the machine lacks
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

// alone reports whether Landlock is the only confinement.
func (l level) alone() bool { return l.lacks == namespaces }

// applies reports whether an attempt is meant for the current user.
func (a *attempt) applies(l level) bool { return (!a.root || l.root) && (!a.user || !l.root) }

// A report has the results of the agent.
type report struct {
	Parent   int
	Attempts map[string]string // by name; empty if it succeeded, otherwise the error
}

// Files of the project that the agent reads and writes.
const (
	worldFile  = "escape.json"
	reportFile = "app/report.json"
	coveredBy  = "app/covered.txt" // the file that the planting task may change
	agentFile  = "tool/" + agentName
)

// agentMain runs the agent: it makes all attempts, or plants files to be landed.
func agentMain() int {
	inherited := inheritedDescriptors() // before this program opens any
	prompt, err := io.ReadAll(os.Stdin)
	var w *world
	if err == nil {
		w, err = readWorld()
	}
	if err == nil && strings.HasPrefix(string(prompt), "# verify") {
		fmt.Printf(`{"verdict": "pass", "report": "left: %s;", "issues": []}`+"\n", strings.Join(w.found(), " "))
		return 0
	}
	if err == nil {
		act := func(w *world) error { return attemptAll(w, inherited) }
		for asked, other := range map[string]func(*world) error{"Plant what": plant, "Swap a": swap, "Grant privileges": privilege} {
			if strings.Contains(string(prompt), asked) {
				act = other
			}
		}
		err = act(w)
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

// attemptAll makes the attempts that apply to this user and writes the report.
func attemptAll(w *world, inherited []string) error {
	r := report{Parent: os.Getppid(), Attempts: map[string]string{}}
	here := level{root: os.Geteuid() == 0}
	for _, a := range attempts() {
		if !a.applies(here) {
			continue
		}
		fmt.Fprintln(os.Stderr, "attempt:", a.name) // the last one is known if this process is killed
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
			case <-time.After(hung):
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

// inheritedDescriptors returns the open descriptors except the standard files.
func inheritedDescriptors() (list []string) {
	for fd := 3; fd < 1024; fd++ {
		link, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
		if err == nil && !strings.HasPrefix(link, "anon_inode:") && !strings.HasPrefix(link, "/sys/fs/cgroup/") { // opened by the Go runtime
			list = append(list, link)
		}
	}
	return list
}

// inheritedRow names the attempt that the agent makes before it opens any file.
const inheritedRow = "use an inherited descriptor"

// hung ends an attempt that hangs. A busy machine is slow, and an attempt that is ended too early
// would count as held.
const hung = 2 * time.Minute

// inOwnProcess makes one attempt in a new process.
func inOwnProcess(name string) error {
	runtime.LockOSThread() // the kernel sends the death signal when the thread that started the process ends
	defer runtime.UnlockOSThread()
	exe, err := filepath.Abs(agentFile)
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, name)
	cmd.Args[0] = attemptName
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = hung // a descendant may keep the output open
	timer := time.AfterFunc(hung, func() { cmd.Process.Kill() })
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

// attempts returns the table of all attempts.
func attempts() []attempt {
	return slices.Concat(readAttempts(), writeAttempts(), socketAttempts(), terminalAttempts(), processAttempts(), sharedAttempts(), kernelAttempts(), ringAttempts())
}

// find returns nil if the text contains the secret.
func (w *world) find(text []byte, err error) error {
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), w.Secret) {
		return errors.New("no secret in it")
	}
	return nil
}

// always returns a reason that holds at every level.
func always(why string) func(level) string { return func(level) string { return why } }

// lacks returns a reason if root on this machine lacks a capability.
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

// missing returns a reason if this machine has no such file.
func missing(path string) func(level) string {
	return func(level) string {
		if _, err := os.Stat(path); err != nil {
			return err.Error()
		}
		return ""
	}
}
