package sqlstore

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"lockkeeper/store"
)

// helper runs the test binary as another process. The first three arguments describe the site.
func helper(mode string, args []string) int {
	s := site{args[0], args[1], args[2]}
	ctx := context.Background()
	if mode == "create" {
		say("creating")
		fmt.Println(CreateSQLite(ctx, s.where, s.space))
		return 0
	}
	busy, _ := time.ParseDuration(os.Getenv(busyVariable)) // unset: the default
	st, err := s.open(ctx, Options{Busy: busy})
	if mode == "open" {
		fmt.Println("opened:", err)
		return 0
	}
	if err == nil {
		defer st.Close()
		err = helpers[mode](ctx, s, st, args[3:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, mode, err)
		return 1
	}
	return 0
}

// busyVariable tells a helper how long to wait for its turn.
const busyVariable = "SQLSTORE_TEST_BUSY"

// helpers maps each mode to its function. Tests wait for the lines that a helper prints.
var helpers = map[string]func(context.Context, site, store.Store, []string) error{
	"write": func(ctx context.Context, _ site, st store.Store, _ []string) error {
		return st.Update(ctx, func(store.Tx) error {
			say("writing")
			select {} // until killed
		})
	},
	"listen": func(ctx context.Context, _ site, st store.Store, args []string) error {
		b, err := st.Listen(ctx, args[0])
		if err != nil {
			return err
		}
		say("listening")
		for range b.Woken() {
			say("rung")
		}
		return nil
	},
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// A peer is another process started by a test.
type peer struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
	in    io.WriteCloser
	end   sync.Once
	err   error
}

// start starts a helper process and kills it when the test ends.
func start(t testing.TB, mode string, s site, args ...string) *peer {
	t.Helper()
	p := &peer{t: t, cmd: exec.Command(os.Args[0], append([]string{helperArg, mode, s.kind, s.where, s.space}, args...)...)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	t.Cleanup(p.kill)
	return p
}

// expect waits for a line with the given prefix and returns the rest of it.
func (p *peer) expect(begin string) string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatalf("a process ended before it said %q: %v", begin, p.wait())
	}
	rest, ok := strings.CutPrefix(p.lines.Text(), begin)
	if !ok {
		p.t.Fatalf("a process said %q, want %q", p.lines.Text(), begin)
	}
	return strings.TrimSpace(rest)
}

// kill kills the process with a signal that it cannot handle.
func (p *peer) kill() {
	p.cmd.Process.Kill()
	p.wait()
}

func (p *peer) wait() error {
	p.end.Do(func() { p.err = p.cmd.Wait() })
	return p.err
}
