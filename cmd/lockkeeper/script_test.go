package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/rogpeppe/go-internal/testscript"

	"lockkeeper"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/flow/sample"
	"lockkeeper/internal/machine/machinetest"
)

func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){"lockkeeper": main, scripted.Program: main})
}

// TestScripts runs scripts of whole commands. The commands wait for each other with pipes,
// signals and the state of the locks, never for a fixed time.
func TestScripts(t *testing.T) {
	machinetest.Interruptible()
	p := scripts()
	p.Dir = filepath.Join("..", "..", "testdata", "script")
	testscript.Run(t, p)
}

// scripts returns what all scripts share.
func scripts() testscript.Params {
	return testscript.Params{
		Setup: func(env *testscript.Env) error {
			// Under the race detector a program waits for a second before it exits.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("GIT_CONFIG_SYSTEM", os.DevNull) // tests have no other git configuration
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			upgrade, err := filepath.Abs("../../testdata/upgrade") // projects made by earlier versions
			if err != nil {
				return err
			}
			env.Setenv("UPGRADE", upgrade)
			env.Defer(func() {
				if failed, ok := env.T().(interface{ Failed() bool }); ok && failed.Failed() {
					endAll(env.WorkDir)
				}
			})
			return os.MkdirAll(filepath.Join(env.WorkDir, "repo"), 0o755)
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "superuser":
				return os.Getuid() == 0, nil
			case "sandbox": // a command in the sandbox sees only listed files
				level, err := sandbox.Probe(context.Background())
				return level.HoldsReads(), err
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails":   fails,
			"refused": refused,
			"bounces": bounces,
			"save":    save,
			"inline":  inLine,
			"running": running,
			"stale":   stale,
			"sql":     sql,
			"long":    long,
			"server":  server,
			"sample":  blog,
			"appears": appears,
			"machine": machine,
		},
	}
}

// endAll ends the processes that a failed script has left. Testscript interrupts its background
// commands once and waits for them, but a worker that is interrupted once waits for its commands.
func endAll(work string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // fails only for an invalid pattern
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains("\x00"+string(text), "\x00WORK="+work+"\x00") {
			continue // it has ended, or belongs to another user or script
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			syscall.Kill(pid, syscall.SIGKILL) // fails only if it has ended
		}
	}
}

// fails CODE CMD… runs a command that must exit with exactly this code.
func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails CODE CMD…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		ts.Fatalf("%v", err)
	case err == nil && want != 0:
		ts.Fatalf("ended with 0 instead of %d", want)
	case err != nil && exit.ExitCode() != want:
		ts.Fatalf("ended with %d instead of %d", exit.ExitCode(), want)
	}
}

// refused CODE CMD… does the same as fails, for a command that must change nothing: no lock, no
// event, no file.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	before := everything(ts)
	fails(ts, neg, args)
	out, errs := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	if after := everything(ts); after != before {
		ts.Fatalf("something changed:\n%s\nwas\n%s", after, before)
	}
	if out == "" && errs == "" {
		ts.Fatalf("refused without a word")
	}
}

// everything returns the hash of every file that a refused command must not change. It excludes
// files that processes lock or map, and the file that marks a process of this boot. It includes
// the database and its log, so a single committed row would show.
func everything(ts *testscript.TestScript) string {
	var b strings.Builder
	ts.Check(filepath.WalkDir(ts.Getenv("WORK"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		for _, end := range []string{".alive", "-shm", "-turn"} {
			if strings.HasSuffix(path, end) {
				return nil
			}
		}
		if filepath.Base(filepath.Dir(path)) == "boots" {
			return nil
		}
		content, err := os.ReadFile(path)
		if len(content) == 0 { // such as a log that is still empty
			return err
		}
		fmt.Fprintf(&b, "%s %s %x\n", d.Type(), path, sha256.Sum256(content))
		return err
	}))
	return b.String()
}

// bounces CODE CMD… does the same as fails, for a command that must not change the codebase but
// may record events.
func bounces(ts *testscript.TestScript, neg bool, args []string) {
	before := codebase(ts)
	fails(ts, neg, args)
	if after := codebase(ts); after != before {
		ts.Fatalf("the codebase changed:\n%s\nwas\n%s", after, before)
	}
}

// codebase returns every name in the root with its mode, content and link target, except the
// files of git and Lockkeeper.
func codebase(ts *testscript.TestScript) string {
	var b strings.Builder
	ts.Check(filepath.WalkDir(filepath.Join(ts.Getenv("WORK"), "repo"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".lockkeeper" || d.Name() == ".git"):
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		switch {
		case info.Mode().IsRegular():
			content, err = os.ReadFile(path)
		case info.Mode()&fs.ModeSymlink != 0:
			var to string
			to, err = os.Readlink(path)
			content = []byte(to)
		}
		fmt.Fprintf(&b, "%s %s %x\n", info.Mode(), path, sha256.Sum256(content))
		return err
	}))
	return b.String()
}

// save NAME stores the last standard output in a variable.
func save(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: save NAME")
	}
	text := strings.TrimSpace(ts.ReadFile("stdout"))
	ts.Setenv(args[0], text)
	ts.Setenv(args[0]+"_SHORT", lockkeeper.ShortID(text)) // of a grant
}

// inline N returns when N requests are in the wait list.
func inLine(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	until(ts, args[0]+" requests in line", func(s state) bool { return len(s.Waiting) == want })
}

// stale N returns when N grants are stale.
func stale(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	until(ts, args[0]+" stale grants", func(s state) bool { return len(s.Stale) == want })
}

// running HOLDER returns when the command of a holder is recorded.
func running(ts *testscript.TestScript, neg bool, args []string) {
	until(ts, "a running command of "+args[0], func(s state) bool {
		for _, g := range s.Held {
			if g.Holder == args[0] && g.Process.Group != 0 {
				return true
			}
		}
		return false
	})
}

// hung is how long a test waits for a state before it fails. It is only a limit for hangs.
const hung = 5 * time.Minute

// waitFor polls a state until it is reached.
func waitFor[T any](t interface{ Fatalf(string, ...any) }, what string, reached func() (T, bool)) T {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		v, ok := reached()
		if ok {
			return v
		}
		if time.Since(begin) > hung {
			t.Fatalf("no %s within %s", what, hung)
		}
	}
}

// until polls the locks until they are as expected.
func until(ts *testscript.TestScript, what string, expected func(state) bool) {
	waitFor(ts, what, func() (struct{}, bool) { return struct{}{}, expected(look(ts)) })
}

type state struct {
	Held []struct {
		Holder  string
		Process struct{ Group int }
	}
	Stale   []json.RawMessage
	Waiting []json.RawMessage
}

func look(ts *testscript.TestScript) (s state) {
	ts.Check(ts.Exec("lockkeeper", "status", "--json"))
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &s))
	return s
}

// sql FILE STATEMENT… changes a database without the program.
func sql(ts *testscript.TestScript, neg bool, args []string) {
	conn, err := sqlite3.OpenContext(context.Background(), ts.MkAbs(args[0]))
	ts.Check(err)
	defer conn.Close()
	ts.Check(conn.Exec(strings.Join(args[1:], " ")))
}

// server NAME stores the address of the PostgreSQL server in a variable. Without a server the
// script fails, so that no test is skipped silently.
func server(ts *testscript.TestScript, neg bool, args []string) {
	url := os.Getenv("LOCKKEEPER_TEST_POSTGRES")
	if url == "" {
		ts.Fatalf("LOCKKEEPER_TEST_POSTGRES is not set: run make test, or scripts/postgres run -- go test ./…")
	}
	ts.Setenv(args[0], url)
}

// long FILE KIND writes input that is too long for a script.
func long(ts *testscript.TestScript, neg bool, args []string) {
	var text string
	switch args[1] {
	case "path":
		text = strings.Repeat("d/", 2048) + "x\n"
	case "line":
		text = strings.Repeat("x", 1<<20)
	case "many":
		var b strings.Builder
		for i := range 20_001 {
			fmt.Fprintf(&b, "many/%d\n", i)
		}
		text = b.String()
	case "thousands":
		var b strings.Builder
		for i := range 5_000 {
			fmt.Fprintf(&b, "many/%d\n", i)
		}
		text = b.String()
	case "nul":
		text = "a\nb\x00c\x00"
	case "crlf":
		text = "a\r\nb\r\n"
	case "hostile":
		text = "esc\x1b[2Jape\n"
	default:
		ts.Fatalf("long: unknown kind %s", args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// sample DIR writes the sample application into a directory. Its configuration lets the scripted
// agent change it, and the script next to it has no pauses.
func blog(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sample DIR")
	}
	dir, scripts := ts.MkAbs(args[0]), ts.MkAbs(args[0]+"-script")
	script, err := sample.Script(0)
	ts.Check(err)
	ts.Check(sample.Write(dir))
	ts.Check(os.Mkdir(scripts, 0o755))
	ts.Check(os.WriteFile(filepath.Join(scripts, "script.yaml"), script, 0o644))
	ts.Setenv(scripted.ScriptVariable, filepath.Join(scripts, "script.yaml"))
	ts.Check(os.WriteFile(filepath.Join(dir, "lockkeeper.yaml"), fmt.Appendf(nil, `max_test_concurrency: 4
gate:
  allowed_write_paths: [app, test, config]
agent:
  command: [%s]
  caches: [%q]
run:
  test_command: %s {path}
  ci: [%s]
`, scripted.Program, scripts, sample.Test, sample.CI), 0o644))
}

// appears FILE TEXT returns when a file that another process writes contains a text.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	waitFor(ts, fmt.Sprintf("%q in %s", args[1], args[0]), func() (struct{}, bool) {
		said, err := os.ReadFile(ts.MkAbs(args[0]))
		return struct{}{}, err == nil && strings.Contains(string(said), args[1])
	})
}
