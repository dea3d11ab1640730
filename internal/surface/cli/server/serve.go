package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/api"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/compat"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

type program struct{ *command.Program }

func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.serveCommand(), p.loginCommand(), p.tokenCommand()}
}

type serveOptions struct {
	command   string // the command that serves
	listen    string
	cert, key string
	beyond    bool
	hosts     []string
}

func (p *program) serveCommand() *cobra.Command {
	o := serveOptions{command: "serve"}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the dashboard and the HTTP API of this codebase",
		Long: `Serve the dashboard, the HTTP API and the event stream of this codebase until a signal
(Ctrl-C) stops it. It listens on a free port of this machine only. On a terminal it
prints a link that logs you in once; lockkeeper login prints another. In a pipe it prints
only the address.

To listen for other machines it needs TLS: --tls-cert and --tls-key. Give the names of
the server with --allow-host; requests to other names are refused. docs/security.md says
what this does not protect from.

/api/v1/openapi.json describes the HTTP API. Tools authenticate with tokens of
lockkeeper token add. Agents use the Model Context Protocol at /mcp, and git-lfs uses
/lfs: see docs/mcp.md and docs/git-lfs.md.`,
		Example: `  lockkeeper serve
  lockkeeper serve --listen 127.0.0.1:4711
  lockkeeper serve --listen :8443 --tls-cert cert.pem --tls-key key.pem --allow-host locks.example.org`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.WithSettings(cmd.Context(), p.ForOthers(), func(a *project.Project) error { return p.serve(cmd.Context(), a, o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "the `address` and port to listen on; port 0 is any free port (default: serve.listen, 127.0.0.1:0)")
	f.StringVar(&o.cert, "tls-cert", "", "a `file` with the certificate, for TLS")
	f.StringVar(&o.key, "tls-key", "", "a `file` with the key of the certificate")
	f.BoolVar(&o.beyond, "insecure-beyond-loopback", false, "listen for other machines without TLS; anyone on the network can then read tokens")
	f.StringArrayVar(&o.hosts, "allow-host", nil, "another host `name` of the server; repeatable")
	return cmd
}

func (p *program) serve(ctx context.Context, a *project.Project, o serveOptions) (err error) {
	log := p.logger()
	a.Locks.StartReaper(a.Config.ReaperInterval, func(err error) { log.Warn("cannot look for expired leases", "error", err) })
	runs := acts.NewRuns(a, p.Env, warnings(log))
	defer func() { err = errors.Join(err, runs.Close()) }()
	came, forget := command.StopSignals()
	defer forget()
	s, err := api.Open(ctx, p.serving(a, runs, o, log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	claims, err := author.Open(a, p.Env)
	if err != nil {
		return err
	}
	watch := claims.Watch(ctx, func(n author.Note) { log.Warn(compat.NoteText(n)) }, func(err error) { log.Warn("cannot update the claims file", "error", err) })
	defer watch.Close()
	if err := p.welcome(ctx, s); err != nil {
		return err
	}
	failed := func(err error) { log.Warn("cannot compare the files that are held", "error", err) }
	return session.Open(a).Watched(ctx, session.Watcher{Failed: failed}, func(ctx context.Context) error {
		select {
		case <-came: // a signal ends the server
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

func (p *program) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// warnings returns a listener that logs the warnings of runs. The event log has the rest.
func warnings(log *slog.Logger) func(run.News) {
	return func(n run.News) {
		if n.Kind != run.NewsWarning {
			return
		}
		var facts []any
		for _, f := range [][2]string{{"unit", n.Unit}, {"batch", n.Batch}, {"phase", n.Phase}, {"item", n.Item}} {
			if f[1] != "" {
				facts = append(facts, f[0], f[1])
			}
		}
		log.Warn(n.Text, facts...)
	}
}

func (p *program) serving(a *project.Project, runs *acts.Runs, o serveOptions, log *slog.Logger) api.Options {
	c := a.Config.Serve
	return api.Options{
		App: a, View: view.New(a), Runs: runs,
		Listen: cmp.Or(o.listen, c.Listen), Certificate: o.cert, Key: o.key, BeyondLoopback: o.beyond, AllowHosts: append(c.AllowHosts, o.hosts...),
		Webhook: c.Webhook, Session: c.Session, Clients: c.LocalClients, Owner: p.ownName(), Command: o.command, Version: project.Version(), Log: log,
	}
}

// mayLogIn reports whether to print the link that logs in: only to a person at a terminal. The
// output of a pipe may be stored, and agents do not log in.
func (p *program) mayLogIn() bool {
	_, inside := p.Agent()
	return term.IsTerminal(p.Out) && !inside
}

func (p *program) welcome(ctx context.Context, s *api.Server) error {
	if p.JSON {
		return p.PrintJSON(map[string]any{"address": s.Address()})
	}
	if !p.mayLogIn() {
		fmt.Fprintln(p.Out, s.Address())
		p.Advise("lockkeeper login, which prints a link that logs you in")
		return nil
	}
	link, err := s.LoginLink(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "Lockkeeper is at %s\n\n  %s\n\nThe link logs you in once, within %d minutes; lockkeeper login prints another.\nCtrl-C stops the server.\n",
		s.Address(), p.Painter(p.Out)(term.Bold, link), int(access.TicketLife.Minutes()))
	return nil
}

// A Dashboard is served while a command does other work.
type Dashboard struct {
	p      *program
	runs   *acts.Runs
	server *api.Server
}

// OpenDashboard serves the dashboard of a project during a command, which it names. It prints the warnings of runs that were
// started in the dashboard, and no other errors of the server.
func OpenDashboard(ctx context.Context, core *command.Program, a *project.Project, command string) (*Dashboard, error) {
	p := &program{core}
	b := &Dashboard{p: p, runs: acts.NewRuns(a, p.Env, warnings(p.logger()))}
	var err error
	if b.server, err = api.Open(ctx, p.serving(a, b.runs, serveOptions{command: command}, slog.New(slog.DiscardHandler))); err != nil {
		return nil, errors.Join(err, b.runs.Close())
	}
	return b, nil
}

// Announce prints the address of the dashboard on one line.
func (b *Dashboard) Announce(ctx context.Context) error {
	if !b.p.mayLogIn() {
		fmt.Fprintf(b.p.Out, "dashboard: %s (lockkeeper login)\n", b.server.Address())
		return nil
	}
	link, err := b.server.LoginLink(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.p.Out, "dashboard: %s (logs you in once)\n", b.p.Painter(b.p.Out)(term.Bold, link))
	return nil
}

// Close stops the server and the runs started in it.
func (b *Dashboard) Close() error {
	return errors.Join(b.server.Close(), b.runs.Close())
}
