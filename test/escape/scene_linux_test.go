package escape

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/project/projecttest"
)

var must = projecttest.Must

// limit ends programs that hang. A busy machine is slow, so it is generous.
const limit = 20 * time.Minute

// nobody is the id of an ordinary user.
const nobody = 65534

// A scene is a project of a user, with everything that an agent could want to steal or change.
type scene struct {
	t       *testing.T
	l       level
	dir     string
	program string // the test's own, at a path where every user can run it
	env     []string
	uid     int
	w       world
}

func newScene(t *testing.T, l level) *scene {
	t.Helper()
	s := &scene{t: t, l: l, uid: os.Geteuid()}
	if s.uid == 0 && !l.root {
		s.uid = nobody
	}
	dir, err := os.MkdirTemp("", "lk-escape-") // short, because socket names are limited
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	s.dir, err = filepath.EvalSymlinks(dir)
	must(t, err)
	must(t, os.Chmod(s.dir, 0o755))
	exe, err := os.Executable()
	must(t, err)
	s.program = filepath.Join(s.dir, "program")
	copyFile(t, exe, s.program)
	home := filepath.Join(s.dir, "home")
	s.w = world{Secret: "planted-" + rand.Text(), Root: filepath.Join(s.dir, "project"), Home: home, State: filepath.Join(home, ".local", "state", "lockkeeper"), Sockets: map[string]string{}}
	must(t, os.MkdirAll(home, 0o700), os.MkdirAll(filepath.Join(s.w.Root, "app"), 0o755))
	s.plantSecrets()
	s.makeProject()
	s.own(home, s.w.Root)
	s.listen()
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "USER=ann", "TERM=dumb", "GORACE=atexit_sleep_ms=0", "PGPASSFILE=" + filepath.Join(home, "elsewhere/pgpass"),
		"SSH_AUTH_SOCK=" + s.w.Sockets[agentSocket], "DBUS_SESSION_BUS_ADDRESS=unix:path=" + s.w.Sockets[busSocket]}
	for _, name := range secretVariables {
		s.env = append(s.env, name+"="+s.w.Secret)
	}
	s.startVictim()
	s.init()
	s.serve("127.0.0.1:0")
	s.serve("[::1]:0")
	s.logIn()
	return s
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	must(t, err, os.WriteFile(to, text, 0o755), os.Chmod(to, 0o755))
}

// own makes the user of the scene the owner of directories.
func (s *scene) own(dirs ...string) {
	s.t.Helper()
	for _, dir := range dirs {
		must(s.t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, s.uid, s.uid)
		}))
	}
}

// plantSecrets creates the files that an agent should not read.
func (s *scene) plantSecrets() {
	s.t.Helper()
	files := []string{filepath.Join(s.w.State, "tokens/other-space/grant"), filepath.Join(s.w.State, "access/other-space/servers/x.json")}
	for _, path := range homeSecrets {
		files = append(files, filepath.Join(s.w.Home, path))
	}
	if s.l.root {
		s.w.Other = filepath.Join(s.dir, "other")
		files = append(files, filepath.Join(s.w.Other, ".netrc"))
	}
	for _, path := range files {
		must(s.t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(s.w.Secret), 0o600))
	}
	for _, path := range cached {
		path = filepath.Join(s.w.Home, path)
		must(s.t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("as it was\n"), 0o600))
	}
	if s.l.root {
		must(s.t, os.Lchown(s.w.Other, nobody, nobody), os.Lchown(filepath.Join(s.w.Other, ".netrc"), nobody, nobody))
	}
	if handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Join(s.w.Home, homeSecrets[0]), 0); err == nil {
		s.w.HandleOf, s.w.Handle = handle.Type(), handle.Bytes()
	}
}

const config = `gate: {allowed_write_paths: ["."]}
agent: {name: command, command: [/bin/sh, -c, exec ` + agentFile + `], attempts: 1, timeout: 15m, sandbox: %s}
run: {commit: off}
`

const plan = `tasks:
  - name: attempts
    prompt: Try to get out.
    writes: [` + reportFile + `]
  - name: landing
    prompt: Plant what must not land.
    writes: [` + coveredBy + `]
  - name: swapping
    prompt: Swap a directory.
    writes: [` + swappedFile + `]
  - name: privileges
    prompt: Grant privileges.
    writes: [` + privilegedFile + `]
`

// makeProject creates a codebase with a minimal git repository.
func (s *scene) makeProject() {
	s.t.Helper()
	sandbox := "prefer"
	if s.l.off {
		sandbox = "off"
	}
	for path, text := range map[string]string{
		"lockkeeper.yaml": fmt.Sprintf(config, sandbox), "plan.yaml": plan, ".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\thooksPath = hooks\n",
		".git/hooks/pre-commit": "#!/bin/sh\n", "hooks/pre-commit": "#!/bin/sh\n", ".git/refs/heads/.keep": "", ".git/objects/.keep": "",
		".claude/settings.json": "{}\n", ".mcp.json": "{}\n", ".codex/config.toml": "", ".gemini/settings.json": "{}\n", ".pipeline/notes.json": "{}\n", ".analysis/notes.json": "{}\n",
		"app/other.txt": "as it was\n", coveredBy: "as it was\n", filepath.Dir(swappedFile) + "/other.txt": "as it was\n",
	} {
		file := filepath.Join(s.w.Root, path)
		must(s.t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
	}
}

// addAgent adds the agent of the run to the codebase, because a sandbox hides other programs of
// the test.
func (s *scene) addAgent() {
	s.t.Helper()
	file := filepath.Join(s.w.Root, agentFile)
	must(s.t, os.MkdirAll(filepath.Dir(file), 0o755))
	copyFile(s.t, s.program, file)
}

// listen opens the sockets, which send the secret to every client.
func (s *scene) listen() {
	s.t.Helper()
	run := filepath.Join(s.dir, "run")
	must(s.t, os.Mkdir(run, 0o755))
	for name, at := range map[string]string{homeSocket: filepath.Join(s.w.Home, "socket"), agentSocket: filepath.Join(run, "agent.1"), busSocket: filepath.Join(run, "bus"), abstractSocket: "@lk-escape-" + rand.Text()} {
		l, err := net.Listen("unix", at)
		must(s.t, err)
		s.t.Cleanup(func() { l.Close() })
		if !strings.HasPrefix(at, "@") {
			must(s.t, os.Chmod(at, 0o777))
		}
		s.w.Sockets[name] = at
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return // closed
				}
				io.WriteString(c, s.w.Secret)
				c.Close()
			}
		}()
	}
}

// command returns a command that runs the test's own program under a name, as the user of the
// scene.
func (s *scene) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, args...)
	cmd.Args[0] = name
	cmd.Dir, cmd.Env, cmd.SysProcAttr = s.w.Root, s.env, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.uid != os.Geteuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.uid)}
	}
	return cmd
}

// start starts a command until the test ends, and returns its first line of output.
func (s *scene) start(cmd *exec.Cmd) string {
	s.t.Helper()
	in, err := cmd.StdinPipe()
	must(s.t, err)
	out, err := cmd.StdoutPipe()
	must(s.t, err)
	var said bytes.Buffer
	cmd.Stderr = &said
	must(s.t, cmd.Start())
	s.t.Cleanup(func() {
		in.Close()
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		if text == "" {
			s.t.Fatalf("%s: nothing was said, but: %s", cmd.Args, said.String())
		}
		return text
	case <-time.After(limit):
		s.t.Fatalf("%s: %s", cmd.Args, said.String())
	}
	return ""
}

func (s *scene) startVictim() {
	s.t.Helper()
	must(s.t, json.Unmarshal([]byte(s.start(s.command(victimName, filepath.Join(s.w.Home, homeSecrets[0]), s.w.Secret))), &s.w.Victim))
	if handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/ns/mnt", s.w.Victim.PID), unix.AT_SYMLINK_FOLLOW); err == nil {
		s.w.MountsOf, s.w.Mounts = handle.Type(), handle.Bytes()
	}
}

// lockkeeper runs a command of the program and returns its output.
func (s *scene) lockkeeper(args ...string) string {
	s.t.Helper()
	cmd := s.command(projecttest.Lockkeeper, args...)
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", args, err, err.(*exec.ExitError).Stderr)
	}
	return strings.TrimSpace(string(out))
}

func (s *scene) init() {
	s.t.Helper()
	s.lockkeeper("init")
	s.w.Token = s.lockkeeper("token", "add", "root-of-all", "--role", "admin")
	dirs, err := filepath.Glob(filepath.Join(s.w.State, "access", "*", "people"))
	if must(s.t, err); len(dirs) != 1 {
		s.t.Fatalf("people are at %q", dirs)
	}
	s.w.Access = filepath.Dir(dirs[0])
}

func (s *scene) serve(at string) {
	s.t.Helper()
	if l, err := net.Listen("tcp", at); err != nil {
		s.t.Logf("no server at %s: %v", at, err)
		return
	} else {
		l.Close()
	}
	s.w.Servers = append(s.w.Servers, s.start(s.command(projecttest.Lockkeeper, "serve", "--listen", at)))
}

// logIn logs an admin in, as a browser does.
func (s *scene) logIn() {
	s.t.Helper()
	var ticket struct{ Link string }
	must(s.t, json.Unmarshal([]byte(s.lockkeeper("login", "--json", "--as", "root-of-all")), &ticket))
	link, err := url.Parse(ticket.Link)
	must(s.t, err)
	server := "http://" + link.Host
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", server+"/login", strings.NewReader("secret="+link.Fragment))
	must(s.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", server)
	a, err := http.DefaultTransport.RoundTrip(r)
	must(s.t, err)
	defer a.Body.Close()
	if len(a.Cookies()) != 1 {
		s.t.Fatalf("no session: %s", a.Status)
	}
	s.w.Cookie = a.Cookies()[0].Name + "=" + a.Cookies()[0].Value
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// run runs the plan at its own terminal and returns the output.
func (s *scene) run() string {
	s.t.Helper()
	master, slave := s.openTerminal()
	text, err := json.Marshal(s.w)
	must(s.t, err, os.WriteFile(filepath.Join(s.w.Root, worldFile), text, 0o644))
	s.own(s.w.Root)
	cmd := s.command(withoutName, s.l.lacks, filepath.Join(s.dir, projecttest.Lockkeeper), "run", "--plan", "plan.yaml")
	must(s.t, os.Symlink(s.program, filepath.Join(s.dir, projecttest.Lockkeeper)))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	must(s.t, cmd.Start(), slave.Close())
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	said, _ := io.ReadAll(master) // ends with an error once the other end is closed
	cmd.Wait()                    // the report decides, not the exit code
	return string(said)
}

// calls returns the end of what each agent of the run wrote.
func (s *scene) calls() string {
	s.t.Helper()
	var list strings.Builder
	must(s.t, filepath.WalkDir(filepath.Join(s.w.Root, ".lockkeeper/calls"), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&list, "%s: …%s\n", d.Name(), text[max(0, len(text)-500):])
		return err
	}))
	return list.String()
}

func (s *scene) openTerminal() (master, slave *os.File) {
	s.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(s.t, err)
	s.t.Cleanup(func() { master.Close() })
	must(s.t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must(s.t, err)
	s.w.Terminal = fmt.Sprintf("/dev/pts/%d", n)
	slave, err = os.OpenFile(s.w.Terminal, os.O_RDWR|unix.O_NOCTTY, 0)
	must(s.t, err, os.Lchown(s.w.Terminal, s.uid, -1))
	return master, slave
}
