package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/process"
)

// request is what acquire and exec are told to ask for.
type request struct {
	targets
	holder, policy, reason string
	ttl, wait              duration
}

func (r *request) flags(f *pflag.FlagSet) {
	r.targets.flags(f)
	f.StringArrayVar(&r.upgradeable, "upgradeable", nil, "a `path` to read now and perhaps write later; repeatable")
	f.StringVar(&r.holder, "holder", "", "who asks, as others will see it (default: a callsign for this terminal)")
	f.StringVar(&r.policy, "policy", "", "the rules of the grant: "+lockkeeper.PolicyNames(lockkeeper.Policies())+" (default "+lockkeeper.DefaultPolicy+")")
	f.StringVar(&r.reason, "reason", "", "what the locks are for, as others will see it; also --note")
	f.Var(&r.ttl, "ttl", "how long the grant lives without a sign of life (default: the policy's)")
	f.Var(&r.wait, "wait", "how long to wait in line when blocked (default: not at all)")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "note" {
			name = "reason"
		}
		return pflag.NormalizedName(name)
	})
}

// build makes the request with its paths resolved.
func (r *request) build(p *program, a *app.App) (req lockkeeper.Request, err error) {
	if r.holder == "" {
		if r.holder, err = process.Holder(); err != nil {
			return req, err
		}
	}
	req = lockkeeper.Request{Holder: r.holder, Policy: r.policy, TTL: time.Duration(r.ttl)}
	if r.reason != "" {
		req.Metadata = map[string]string{"reason": r.reason}
	}
	req.Locks, err = r.resolve(p, a)
	return req, err
}

type acquireOptions struct {
	request
	pid int
}

func (p *program) acquireCommand() *cobra.Command {
	var o acquireOptions
	cmd := &cobra.Command{
		Use:   "acquire",
		Short: "Take locks, all of them or none",
		Long: `Take locks on files and directories, all of them or none, and print the id of
the grant. The grant ends when it is released, or when nothing renewed it for
its time to live. With --wait the request stands in line, served in the order
of asking; without, being blocked is exit code 3.`,
		Example: `  grant=$(lockkeeper lock acquire --holder otter --write app/user.rb --read config/)
  lockkeeper lock acquire --write app/user.rb --wait 5m --reason "rename the user model"
  git diff --name-only | lockkeeper lock acquire --write-from -
  lockkeeper lock acquire --write app/user.rb --pid $$   # freed when this shell is gone`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), func(a *app.App) error { return p.acquire(cmd, a, o) })
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().IntVar(&o.pid, "pid", 0, "the `process` that stands behind the grant: when it is gone, so is the grant")
	return cmd
}

func (p *program) acquire(cmd *cobra.Command, a *app.App, o acquireOptions) error {
	req, err := o.build(p, a)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("pid") {
		who, err := process.Identify(o.pid)
		if err != nil {
			return err
		}
		req.Process = &who
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	p.announce(ctx, a, req, time.Duration(o.wait))
	g, err := a.Acquire(ctx, req, time.Duration(o.wait))
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(g.Snapshot(p.Now()))
	}
	_, err = fmt.Fprintln(p.Out, g.ID)
	return err
}

// interruptible ends the context on the signals that ask a program to end, so
// that a waiting request leaves the line.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	var ending []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as by nohup
			ending = append(ending, s)
		}
	}
	return signal.NotifyContext(ctx, ending...)
}
