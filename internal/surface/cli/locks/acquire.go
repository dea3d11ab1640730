package locks

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// request has the options of acquire and exec.
type request struct {
	command.Targets
	holder, policy, reason string
	ttl, wait              term.Duration
}

func (r *request) flags(f *pflag.FlagSet) {
	r.Targets.Flags(f)
	f.StringArrayVar(&r.Upgradeable, "upgradeable", nil, "a `path` to read now and maybe write later; repeatable")
	f.StringVar(&r.holder, "holder", "", "the holder that others see (default: a callsign for this terminal)")
	f.StringVar(&r.policy, "policy", "", "the policy of the grant: "+lockkeeper.PolicyNames(lockkeeper.Policies())+" (default "+lockkeeper.DefaultPolicy+")")
	f.StringVar(&r.reason, "reason", "", "why you need the locks, shown to others; also --note")
	f.Var(&r.ttl, "ttl", "the lease: how long the grant lasts without a renewal (default: the policy's)")
	f.Var(&r.wait, "wait", "how long to wait if blocked (default: do not wait)")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "note" {
			name = "reason"
		}
		return pflag.NormalizedName(name)
	})
}

// build returns the request with its paths resolved. It refuses a request without paths, as from an empty list,
// because the work would be unprotected. outcome says in that error which step did not happen.
func (r *request) build(p *program, cmd *cobra.Command, a *project.Project, outcome string) (req lockkeeper.Request, err error) {
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
	if req.Locks, err = r.Resolve(p.Program, a); err != nil {
		return req, err
	}
	if len(req.Locks) == 0 {
		return req, command.Usage(cmd, "names no path; "+outcome)
	}
	p.Notes(a, req.Locks)
	return req, nil
}

// ShortestTTL is the shortest useful lease: a grant that expires before its id is read
// protects nothing.
const ShortestTTL = time.Second

func (r *request) checkTTL(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("ttl") || time.Duration(r.ttl) >= ShortestTTL {
		return nil
	}
	return &lockkeeper.InputError{Field: "ttl", Value: time.Duration(r.ttl).String(), Reason: "shorter than " + ShortestTTL.String(),
		Next: "give a longer lease, or omit --ttl for the default of the policy"}
}

type acquireOptions struct {
	request
	pid int
}

func (p *program) acquireCommand() *cobra.Command {
	var o acquireOptions
	cmd := &cobra.Command{
		Use:   "acquire",
		Short: "Acquire locks and print the grant id",
		Long: `Acquire locks on files and directories, all of them or none, and print the id of
the grant. The grant ends when it is released, or when its lease expires without
being renewed. With --wait a blocked request waits its turn, in the order of
arrival. Without --wait it fails with exit code 3.

The default holder is a callsign for this terminal, such as otter-7. All commands
in one terminal have the same callsign.

The policies, with their default leases (lockkeeper.yaml can change them):
  agent    a task on single files: 30m, released at its end or with its process (default)
  session  an interactive session: 15m, free paths can be added later
  dal      a job on a data tree: 45s, directories, upgradeable; freed only on proof
  tidy     a sweep over directories: 30m, then the next sweep may break it
  author   a text by one author: 15m, then a person decides
  person   held until released, without a time limit; a person decides`,
		Example: `  grant=$(lockkeeper lock acquire --holder otter --write app/user.rb --read config/)
  lockkeeper lock acquire --write app/user.rb --wait 5m --reason "rename the user model"
  git diff -z --name-only --relative | lockkeeper lock acquire --write-from -
  lockkeeper lock acquire --write app/user.rb --pid $$   # released when this shell ends`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error { return p.acquire(cmd, a, o) })
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().IntVar(&o.pid, "pid", 0, "the `process` that owns the grant: when it ends, the grant is released")
	return cmd
}

func (p *program) acquire(cmd *cobra.Command, a *project.Project, o acquireOptions) error {
	req, err := o.build(p, cmd, a, "nothing was acquired")
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
	ctx, stop := command.Interruptible(cmd.Context())
	defer stop()
	g, err := p.Take(ctx, a, req, time.Duration(o.wait), a.Acquire)
	if err != nil {
		return err
	}
	if err = p.Answer(g.Snapshot(p.Now()), "%s", g.ID); err != nil { // the caller did not get the id
		if _, releasing := a.Release(cmd.Context(), g.ID); releasing != nil {
			p.Say("cannot release the grant: " + releasing.Error())
		}
	}
	return err
}

func (p *program) checkCommand() *cobra.Command {
	var t command.Targets
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether locks would be granted, without acquiring them",
		Long: `Check whether a request would be granted now, without acquiring anything. The exit
code is 0 if the paths are free. Otherwise it is 3, with every conflict.`,
		Example: `  lockkeeper lock check --write app/user.rb && echo free`,
		Args:    command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error {
				locks, err := t.Resolve(p.Program, a)
				if err != nil {
					return err
				}
				if len(locks) == 0 {
					return command.Usage(cmd, "needs a path to check")
				}
				found, err := a.Locks.CheckConflicts(cmd.Context(), locks)
				if err != nil {
					return err
				}
				if len(found) > 0 {
					return &lockkeeper.BlockedError{Conflicts: found}
				}
				return p.Answer(map[string]any{"free": true, "conflicts": []lockkeeper.ConflictInfo{}}, "free")
			})
		},
	}
	t.Flags(cmd.Flags())
	return cmd
}
