package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// roles are the main functions of the processes that the bench starts.
var roles = map[string]func(b *bench, p *parent, args []string){"contender": asContender, "etcd": asEtcd, "waiter": asWaiter}

// A child is a process of this executable in a role. Both sides exchange lines of text.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a process, which ends with the comparison.
func (b *bench) start(role string, args ...string) *child {
	c := &child{cmd: exec.CommandContext(b.ctx, get(os.Executable()), append([]string{"as", role}, args...)...)}
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.cmd.WaitDelay = 5 * time.Second
	c.in = get(c.cmd.StdinPipe())
	c.out = bufio.NewReader(get(c.cmd.StdoutPipe()))
	check(c.cmd.Start())
	b.cleanup(func() error {
		c.in.Close() // the process ends when its input is closed
		return c.cmd.Wait()
	})
	return c
}

func (c *child) say(text string) { get(fmt.Fprintln(c.in, text)) }

func (c *child) line() string {
	text, err := c.out.ReadString('\n')
	if err != nil {
		check(fmt.Errorf("a process of the bench ended: %w", err))
	}
	return strings.TrimSpace(text)
}

// A parent is the process that started this one.
type parent struct{ in *bufio.Reader }

func (p *parent) say(text string) { get(fmt.Println(text)) }

func (p *parent) sayJSON(v any) { p.say(string(get(json.Marshal(v)))) }

// line returns the next line of the parent, or io.EOF when the parent is done.
func (p *parent) line() (string, error) {
	text, err := p.in.ReadString('\n')
	return strings.TrimSpace(text), err
}
