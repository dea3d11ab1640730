package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/process"
	"lockkeeper/lock"
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

// build makes the request with its paths resolved. One that names none, perhaps
// because a list is empty, would leave unprotected what was meant; outcome says
// what did not happen.
func (r *request) build(p *program, cmd *cobra.Command, a *app.App, outcome string) (req lockkeeper.Request, err error) {
	if r.holder == "" {
		if r.holder, err = process.Holder(); err != nil {
			return req, err
		}
	}
	if err := r.checkTTL(cmd); err != nil {
		return req, err
	}
	req = lockkeeper.Request{Holder: r.holder, Policy: r.policy, TTL: time.Duration(r.ttl)}
	if r.reason != "" {
		req.Metadata = map[string]string{"reason": r.reason}
	}
	if req.Locks, err = r.resolve(p, a); err != nil {
		return req, err
	}
	if len(req.Locks) == 0 {
		return req, usage(cmd, "names no path; "+outcome)
	}
	p.notes(a, req.Locks)
	return req, nil
}

// shortestTTL is the least that is of use to anybody: a grant that is gone
// before its id is read protects nothing.
const shortestTTL = time.Second

func (r *request) checkTTL(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("ttl") || time.Duration(r.ttl) >= shortestTTL {
		return nil
	}
	return &lockkeeper.InputError{Field: "ttl", Value: time.Duration(r.ttl).String(), Reason: "shorter than " + shortestTTL.String(),
		Next: "give more, or leave --ttl out for the policy's own"}
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
of asking; without, being blocked is exit code 3.

Without --holder the holder is a callsign for this terminal, such as otter-7: the
same name for all that is typed there.

The policies, with their times where lockkeeper.yaml sets no others:
  agent    a task on single files; 30m, freed at its end and with its process (default)
  session  a sitting that grows: 15m, paths that are free may be added later
  dal      a job on a tree of data: 45s, directories, upgradeable; freed on proof only
  tidy     a sweep over directories: 30m; when that is past, the next one may break it
  author   a text under one hand: 15m; when that is past, a person decides
  person   held until released, however long; a person decides`,
		Example: `  grant=$(lockkeeper lock acquire --holder otter --write app/user.rb --read config/)
  lockkeeper lock acquire --write app/user.rb --wait 5m --reason "rename the user model"
  git diff -z --name-only --relative | lockkeeper lock acquire --write-from -
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
	req, err := o.build(p, cmd, a, "nothing was taken")
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
	g, err := p.take(ctx, a, req, time.Duration(o.wait), a.Acquire)
	if err != nil {
		return err
	}
	if p.json {
		err = p.printJSON(g.Snapshot(p.Now()))
	} else {
		_, err = fmt.Fprintln(p.Out, g.ID)
	}
	if err != nil { // nobody knows of the grant
		if _, releasing := a.Release(cmd.Context(), g.ID); releasing != nil {
			p.say("the grant could not be given back: " + releasing.Error())
		}
	}
	return err
}

// take gets the grant that is asked for, waiting in line as told, in one of the
// app's ways.
func (p *program) take(ctx context.Context, a *app.App, req lockkeeper.Request, wait time.Duration,
	way func(context.Context, lockkeeper.Request, time.Duration) (*lock.Grant, error)) (*lock.Grant, error) {
	if err := p.notMyOwn(ctx, a, req, wait); err != nil {
		return nil, err
	}
	p.announce(ctx, a, req, wait)
	g, err := way(ctx, req, wait)
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	return g, nil
}

// notMyOwn refuses to wait for a grant that this very command runs under: it
// ends only after the wait.
func (p *program) notMyOwn(ctx context.Context, a *app.App, req lockkeeper.Request, wait time.Duration) error {
	under := process.Under(p.Env)
	if len(under) == 0 || wait <= 0 {
		return nil
	}
	found, err := a.Locks.CheckConflicts(ctx, req.Locks)
	if err != nil {
		return interrupted(ctx, err)
	}
	for _, c := range found {
		if slices.Contains(under, c.GrantID) {
			return &lockkeeper.BlockedError{Holder: req.Holder, Conflicts: found}
		}
	}
	return nil
}
