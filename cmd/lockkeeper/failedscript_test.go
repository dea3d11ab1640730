package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"lockkeeper/internal/machine/machinetest"
)

// A scriptTest is the testing.T of one script. Its failure fails no test.
type scriptTest struct {
	*testing.T
	failed bool
}

func (s *scriptTest) Verbose() bool     { return false }
func (s *scriptTest) Parallel()         {}
func (s *scriptTest) Failed() bool      { return s.failed }
func (s *scriptTest) Skip(args ...any)  { s.T.Skip(args...) }
func (s *scriptTest) Fatal(args ...any) { s.Log(args...); s.FailNow() }
func (s *scriptTest) FailNow()          { s.failed = true; runtime.Goexit() }
func (s *scriptTest) Run(_ string, f func(testscript.T)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(s)
	}()
	<-done
}

// A script whose assertion fails ends, although a worker in the background waits for its command.
func TestFailedScriptEnds(t *testing.T) {
	machinetest.Interruptible()
	file := filepath.Join(t.TempDir(), "fails.txtar")
	script := `cd repo
exec lockkeeper init
exec lockkeeper job submit -- sh -c 'echo here > started; exec sleep 100000'
exec lockkeeper job work &
appears started here
fails 3 lockkeeper version
`
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	p := scripts()
	p.Files = []string{file}
	s := &scriptTest{T: t}
	testscript.RunT(s, p)
	if !s.failed {
		t.Error("the script did not fail")
	}
}
