package locks

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
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
	f.StringArrayVar(&r.UpgradeableNodes, "upgradeable-node", nil, "a `node` to read now and maybe write later; repeatable")
	f.StringVar(&r.holder, "holder", "", "the holder that others see (default: a callsign for this terminal)")
	f.StringVar(&r.policy, "policy", "", "the policy of the grant: "+lockkeeper.PolicyNames(lockkeeper.Policies())+" (default "+lockkeeper.DefaultPolicy+"; with a node "+acts.DataPolicy+")")
	f.StringVar(&r.reason, "reason", "", "why you need the locks, shown to others; also --note")
	f.Var(&r.ttl, "ttl", "the lease: how long the grant lasts without a renewal (default: the policy's)")
	f.Var(&r.wait, "wait", "how long to wait if blocked: 5m if no time follows (default: do not wait)")
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
		mine, err := p.Mine(cmd.Context())
		if err != nil {
			return req, err
		}
		r.holder = mine.Holder()
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
	req.Policy = acts.PolicyFor(req.Policy, req.Locks, "")
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

A value such as a.py,b.py is a list. A quoted pattern such as 'src/**/*.py' is the files
that match it now, which are listed. A path that exists is taken literally.

The default holder is a callsign for this terminal, such as otter-7. All commands
in one terminal have the same callsign. In a session with hooks it is the session's.

The policies, with their default leases (lockkeeper.yaml can change them):
  agent    a task on single files: 30m, released at its end or with its process (default)
  session  an interactive session: 15m, free paths can be added later
  dal      a job on a data tree: 45s, directories, upgradeable; freed only on proof
  tidy     a sweep over directories: 30m, then the next sweep may break it
  author   a text by one author: 15m, then a person decides
  person   held until released, without a time limit; a person decides

A node is a resource of lockkeeper.yaml, such as project/p1/map/m2. Its files are
locked with it. Requests with a node have the policy dal.`,
		Example: `  grant=$(lockkeeper lock acquire --holder otter --write app/user.rb --read config/)
  lockkeeper lock acquire --write app/user.rb --wait 5m --reason "rename the user model"
  git diff -z --name-only --relative | lockkeeper lock acquire --write-from -
  lockkeeper lock acquire --read-node project/p1 --upgradeable-node project/p1/map/m2
  lockkeeper lock acquire --write app/user.rb --pid $$   # released when this shell ends`,
		Args: p.NoWords,
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, _ []string) error { return p.acquire(cmd, a, o) }),
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
		Args:    p.NoWords,
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, _ []string) error {
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
		}),
	}
	t.Flags(cmd.Flags())
	return cmd
}

func (p *program) renewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "renew GRANT",
		Short: "Renew the lease of a grant",
		Long: `Renew the lease of one of your grants: the full time starts again. A grant that
was released or has expired cannot be renewed; acquire again.`,
		Example: `  lockkeeper lock renew 1b4e28ba-2fa1-41d2-883f-0016d3cca427`,
		Args:    command.Exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *project.Project, id, token string) (lockkeeper.Grant, error) {
				return a.Locks.Renew(cmd.Context(), id, token)
			})
		},
	}
}

// onGrant changes a grant of this user and shows the result.
func (p *program) onGrant(cmd *cobra.Command, name string, change func(a *project.Project, id, token string) (lockkeeper.Grant, error)) error {
	return p.With(cmd.Context(), func(a *project.Project) error {
		id, err := a.GrantID(cmd.Context(), name)
		if err != nil {
			return err
		}
		token, err := a.Tokens.Get(id)
		if err != nil {
			return err
		}
		g, err := change(a, id, token)
		if err != nil {
			return err
		}
		shown := g.Snapshot(p.Now())
		return p.Answer(shown, "%s: %s for %s, expires %s", g.ID, term.Counted(len(g.Locks), "lock"), term.Clean(g.Holder), term.Until(shown.ExpiresAt, p.Now()))
	})
}

func (p *program) extendCommand() *cobra.Command {
	var t command.Targets
	cmd := &cobra.Command{
		Use:   "extend GRANT",
		Short: "Add paths to a grant, if its policy allows it",
		Long: `Add paths to a grant, all of them or none. It never waits. With policy session a
grant can add any free path. With policy dal it can add only what comes later in the
global order: paths are sorted by name. Nodes are ordered by level (projects, maps,
sketches), then by id. Grants of other policies cannot be extended.`,
		Example: `  lockkeeper lock extend "$grant" --write app/second.rb
  lockkeeper lock extend "$grant" --write-node project/p1/map/m3`,
		Args: command.Exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *project.Project, id, token string) (lockkeeper.Grant, error) {
				locks, err := t.Resolve(p.Program, a)
				if err != nil {
					return lockkeeper.Grant{}, err
				}
				if len(locks) == 0 {
					return lockkeeper.Grant{}, command.Usage(cmd, "needs a path to add")
				}
				return a.Locks.Extend(cmd.Context(), id, token, locks...)
			})
		},
	}
	t.Flags(cmd.Flags())
	return cmd
}

func (p *program) upgradeCommand() *cobra.Command {
	var nodes []string
	cmd := &cobra.Command{
		Use:   "upgrade GRANT PATH…",
		Short: "Upgrade locks to write locks",
		Long: `Upgrade the upgradeable locks of a grant to write locks, all the paths or none,
without releasing them in between. It never waits: if another holder reads there,
it is blocked and the locks stay upgradeable.`,
		Example: `  grant=$(lockkeeper lock acquire --policy dal --upgradeable data/index)
  lockkeeper lock upgrade "$grant" data/index
  lockkeeper lock upgrade "$grant" --node project/p1/map/m2`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args)+len(nodes) < 2 || len(args) == 0 {
				return command.Usage(cmd, "needs the id of a grant, and one path or node or more")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *project.Project, id, token string) (lockkeeper.Grant, error) {
				paths := make([]string, len(args)-1)
				for i, path := range args[1:] {
					l, err := a.Resolve(lockkeeper.Write, path)
					if err != nil {
						return lockkeeper.Grant{}, err
					}
					paths[i] = l.Path
				}
				of, err := acts.NodeLocks(a, lockkeeper.Write, nodes...)
				if err != nil {
					return lockkeeper.Grant{}, err
				}
				for _, l := range of {
					paths = append(paths, l.Path)
				}
				return a.Locks.Upgrade(cmd.Context(), id, token, paths...)
			})
		},
	}
	cmd.Flags().StringArrayVar(&nodes, "node", nil, "a `node` to upgrade, with its files; repeatable")
	return cmd
}

func (p *program) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release GRANT",
		Short: "Release locks",
		Long: `Release a grant, named by its id or the start of it. The next request in the queue gets it at once. Releasing an id
that is unknown, or was released before, is harmless: exit code 0 and a note.`,
		Example: `  lockkeeper lock release 1b4e28ba-2fa1-41d2-883f-0016d3cca427`,
		Args:    command.Exactly(1, "the id of a grant"),
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, args []string) error {
			id, err := a.ReleasedID(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			released, err := a.Release(cmd.Context(), id)
			if err != nil {
				return err
			}
			landDue(cmd.Context(), p.Program, a)
			if !released {
				p.Note("nothing to release: no grant has the id %q; it may have been released or have expired", args[0])
			}
			if p.JSON {
				return p.PrintJSON(map[string]any{"id": id, "released": released})
			}
			return nil
		}),
	}
}
