package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// runAs is the main function of a process that the bench started.
func runAs(ctx context.Context, role string, args []string) error {
	p := &parent{in: bufio.NewReader(os.Stdin)}
	switch role {
	case "contender":
		return asContender(ctx, p, args)
	case "etcd":
		return asEtcd(ctx, p, args)
	case "waiter":
		return asWaiter(ctx, p, args)
	}
	return fmt.Errorf("unknown role")
}

// child is a process of this executable in a role, spoken to in lines.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(ctx context.Context, role string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, append([]string{"as", role}, args...)...)}
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.cmd.WaitDelay = 5 * time.Second
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

func (c *child) say(text string) error {
	_, err := fmt.Fprintln(c.in, text)
	return err
}

func (c *child) line() (string, error) {
	text, err := c.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("a process of the bench went away: %w", err)
	}
	return strings.TrimSpace(text), nil
}

// stop lets the process end, because its input does, and waits for it.
func (c *child) stop() error {
	c.in.Close()
	return c.cmd.Wait()
}

// parent is the process that started this one.
type parent struct{ in *bufio.Reader }

func (p *parent) say(text string) error {
	_, err := fmt.Println(text)
	return err
}

func (p *parent) sayJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.say(string(text))
}

// line is the next thing the parent says; io.EOF when it is done.
func (p *parent) line() (string, error) {
	text, err := p.in.ReadString('\n')
	return strings.TrimSpace(text), err
}

func (p *parent) wait(text string) error {
	said, err := p.line()
	if err == nil && said != text {
		err = fmt.Errorf("expected %q and heard %q", text, said)
	}
	return err
}
