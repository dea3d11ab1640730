package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lockkeeper": main})
}

// TestScripts runs the scenarios of whole commands. They wait for each other by
// pipes, signals and the state of the locks, never by time.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("..", "..", "testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("POSTGRES", os.Getenv("LOCKKEEPER_TEST_POSTGRES"))
			return os.Mkdir(filepath.Join(env.WorkDir, "repo"), 0o755)
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "postgres":
				return os.Getenv("LOCKKEEPER_TEST_POSTGRES") != "", nil
			case "superuser":
				return os.Getuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails":   fails,
			"refused": refused,
			"save":    save,
			"inline":  inLine,
			"sql":     sql,
			"long":    long,
		},
	})
}

// fails CODE CMD… runs a command that must end with exactly this code.
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

// refused CODE CMD… is fails for a command that must change nothing: no lock,
// no event, no file.
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

// everything is what a refused command must leave as it was: the record, and
// the names and sizes of all files but the database's own.
func everything(ts *testscript.TestScript) string {
	var b strings.Builder
	program, err := exec.LookPath("lockkeeper")
	ts.Check(err)
	audit := exec.Command(program, "audit", "--json", "--limit", "0")
	audit.Dir = ts.MkAbs(".")
	audit.Env = append(os.Environ(), "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	if out, err := audit.Output(); err == nil { // where there is no root there is no record
		b.Write(out)
	}
	work := ts.Getenv("WORK")
	ts.Check(filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(d.Name(), "state.db") || strings.HasSuffix(d.Name(), ".alive") {
			return nil
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			fmt.Fprintln(&b, path, info.Size(), info.Mode())
		}
		return nil
	}))
	return b.String()
}

// save NAME keeps the last standard output in a variable.
func save(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: save NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// inline N returns when N requests stand in line.
func inLine(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	for {
		ts.Check(ts.Exec("lockkeeper", "status", "--json"))
		var s struct{ Waiting []json.RawMessage }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &s))
		if len(s.Waiting) == want {
			return
		}
	}
}

// sql FILE STATEMENT… changes a database behind the program's back.
func sql(ts *testscript.TestScript, neg bool, args []string) {
	conn, err := sqlite3.OpenContext(context.Background(), ts.MkAbs(args[0]))
	ts.Check(err)
	defer conn.Close()
	ts.Check(conn.Exec(strings.Join(args[1:], " ")))
}

// long FILE KIND writes input that no script can spell.
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
		text = "a\x00b\n"
	case "hostile":
		text = "esc\x1b[2Jape\n"
	default:
		ts.Fatalf("long: unknown kind %s", args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}
