package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session/hook"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: lockkeeper-hook claude-code|codex|gemini|opencode <call.json; see lockkeeper hook --help")
		os.Exit(hook.Refused) // an incorrectly configured hook must not permit a write
	}
	agent := os.Args[1]
	if agent == "--version" {
		fmt.Println("lockkeeper-hook " + project.Version())
		return
	}
	os.Exit(hook.Main(agent, hook.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv,
		Postgres: func(call []byte) error { return execMain(agent, call) }}))
}

// execMain replaces this process by `lockkeeper hook`, with the call as its standard input. The
// process keeps its parent, by which the session is recognized. It returns only if it fails.
func execMain(agent string, call []byte) error {
	program, err := mainProgram()
	if err != nil {
		return &lockkeeper.StoreError{Store: "PostgreSQL", Reason: "lockkeeper-hook connects to it through the program lockkeeper, which is neither in the same directory nor in PATH", Err: err,
			Next: "install lockkeeper in the directory of lockkeeper-hook"}
	}
	if err := setInput(call); err != nil {
		return fmt.Errorf("passing the call to %s: %w", program, err)
	}
	return fmt.Errorf("starting %s: %w", program, syscall.Exec(program, []string{program, "hook", agent}, os.Environ()))
}

// setInput makes the call the standard input. A file in memory can hold a call of any size, unlike
// a pipe without a writer.
func setInput(call []byte) error {
	fd, err := unix.MemfdCreate("call", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "call")
	defer f.Close()
	if _, err := f.Write(call); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return unix.Dup3(fd, int(os.Stdin.Fd()), 0)
}

// mainProgram returns the path of lockkeeper: beside this program, or else in PATH.
func mainProgram() (string, error) {
	const name = "lockkeeper"
	if self, err := os.Executable(); err == nil {
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return beside, nil
		}
	}
	return exec.LookPath(name)
}
