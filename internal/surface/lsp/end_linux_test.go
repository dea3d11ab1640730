package lsp_test

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/session"
)

// No event reports that the process of a holder died. The server finds it.
func TestHolderDies(t *testing.T) {
	blog := newBlog(t)
	host := exec.Command("cat")
	stdin, err := host.StdinPipe()
	must(t, err, host.Start())
	id, err := process.Identify(host.Process.Pid)
	must(t, err)
	s, err := session.Open(blog.App).Enter(t.Context(), session.Caller{ID: "two", Agent: "codex", Process: &id})
	must(t, err)
	refused, err := s.Claim(t.Context(), session.Write{Path: "app/user.rb"})
	must(t, err, s.Close())
	if len(refused) > 0 {
		t.Fatal(refused)
	}
	e := start(t, blog.Env, "EDITOR-1")
	user := uriOf(in(blog, "app/user.rb"))
	e.open(user)
	e.hears(published, "app/user.rb is held by")
	must(t, stdin.Close(), host.Wait())
	e.hears(shown, "app/user.rb is free")
	e.end()
}

// The program ends on a signal while its editor sends nothing, releases its claim, and ends
// with the exit codes of the protocol.
func TestProgramEnds(t *testing.T) {
	blog := newBlog(t)
	user := uriOf(in(blog, "app/user.rb"))
	send := func(to io.Writer, bodies ...string) {
		t.Helper()
		for _, body := range bodies {
			_, err := fmt.Fprintf(to, "Content-Length: %d\r\n\r\n%s", len(body), body)
			must(t, err)
		}
	}
	begin := func() (cmd *exec.Cmd, to io.WriteCloser) {
		t.Helper()
		cmd = blog.Command(t, "lsp")
		to, err := cmd.StdinPipe()
		must(t, err)
		out, err := cmd.StdoutPipe()
		must(t, err, cmd.Start())
		send(to, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":%q}}}`, user),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"workspace/executeCommand","params":{"command":"lockkeeper.claim","arguments":[%q]}}`, user))
		var said strings.Builder
		for from := bufio.NewReader(out); !strings.Contains(said.String(), `"id":2`); {
			b, err := from.ReadByte()
			if err != nil {
				t.Fatalf("%v after %s", err, said.String())
			}
			said.WriteByte(b)
		}
		if !strings.Contains(said.String(), "is claimed by you") {
			t.Fatalf("the server said %s", said.String())
		}
		return cmd, to
	}
	for name, end := range map[string]func(*exec.Cmd, io.WriteCloser){
		"signal":           func(cmd *exec.Cmd, _ io.WriteCloser) { must(t, cmd.Process.Signal(syscall.SIGTERM)) },
		"end of the input": func(_ *exec.Cmd, to io.WriteCloser) { must(t, to.Close()) },
		"exit": func(_ *exec.Cmd, to io.WriteCloser) {
			send(to, `{"jsonrpc":"2.0","method":"exit"}`)
		},
	} {
		cmd, to := begin()
		end(cmd, to)
		failed := cmd.Wait() != nil
		if want := name == "exit"; failed != want { // without a shutdown before
			t.Errorf("%s: failed %t, not %t", name, failed, want)
		}
		if held, err := blog.App.Locks.Requests(t.Context()); err != nil || len(held) > 0 {
			t.Errorf("%s: still held: %v %v", name, held, err)
		}
	}
}
