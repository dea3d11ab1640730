package landings

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) replaceDirCommand() *cobra.Command {
	var grant command.GrantID
	var from string
	cmd := &cobra.Command{
		Use:   "replace-dir --grant GRANT DIR --from NEW",
		Short: "Replace a directory as a whole",
		Long: `Replace a directory with a copy of another one, as one landing: at every moment, and
after any crash, it is the old directory or the new one, complete. The grant must hold
the directory above it for writing. So does an operation whose resource has that
directory in its files: the command of lockkeeper op, and that of a job under policy dal,
need no --grant.

These are the ten steps of an ordered write:
  1  the lock on TARGET, by the holder of the grant    event acquired
  2  NEW is copied to TARGET/tmp/ID
  3  each file is synced
  4  TARGET/tmp/ID is synced
  5  it is on the device of TARGET                        event landed
  6  it is exchanged with DIR
  7  TARGET is synced
  8  the manifest says committed
  9  durably                                              event replaced
  10 the lock is released, by its holder                  event released

The directory keeps its permissions; a new one gets 0755. Links and other special files
in NEW are refused. In a pipe it prints only the number of the landing, or nothing if the
directory was the same already. lockkeeper undo brings the old directory back.`,
		Example: `  lockkeeper op generate-tiles --project p1 --map m2 -- sh -c './bin/tiles m2 out && lockkeeper gate replace-dir data/p1/maps/m2/tiles --from out'
  grant=$(lockkeeper lock acquire --write-node project/p1/map/m2)
  lockkeeper gate replace-dir --grant "$grant" data/p1/maps/m2/tiles --from out/`,
		Args: command.Exactly(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if from == "" {
				return command.Usage(cmd, "needs the new directory, with --from")
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.replaceDir(cmd, a, grant, args[0], from) })
		},
	}
	f := cmd.Flags()
	f.Var(&grant, "grant", "the `id` of the grant that holds the directory above (default: that of the operation or job this runs in)")
	f.StringVar(&from, "from", "", "the `directory` with the new content, which stays")
	return cmd
}

func (p *program) replaceDir(cmd *cobra.Command, a *project.Project, id command.GrantID, dir, from string) error {
	if under := process.Under(p.Env); id == "" && len(under) > 0 {
		id = command.GrantID(under[len(under)-1])
	}
	at, err := a.Resolve(lockkeeper.Write, dir+"/")
	if err != nil {
		return err
	}
	grant, err := a.GrantOf(cmd.Context(), string(id))
	if err != nil {
		return err
	}
	ctx, stop := command.Interruptible(cmd.Context())
	defer stop()
	l, err := landing.ReplaceDir(ctx, a, grant, at.Path, p.Path(from))
	if err != nil {
		return command.Interrupted(ctx, errors.Join(err, p.ExplainGrant(ctx, a, id, err)))
	}
	return p.showReplaced(at.Path, l)
}

func (p *program) showReplaced(dir string, l *lockkeeper.Landing) error {
	if p.JSON {
		return p.PrintJSON(struct {
			Path    string              `json:"path"`
			Landing *lockkeeper.Landing `json:"landing"` // null: the directory had that content already
		}{dir, l})
	}
	if l == nil {
		fmt.Fprintf(p.Err, "unchanged  %s/\n", term.Clean(dir))
		return nil
	}
	to := term.File(p.Out)
	if !term.IsTerminal(p.Out) { // a program gets only the number
		fmt.Fprintln(p.Out, l.Seq)
		to = p.Err
	}
	what := "replaced"
	if !l.Changes[0].Old.Exists() {
		what = "created"
	}
	fmt.Fprintf(to, "%s  %s/\n", what, term.Clean(dir))
	p.Advise(fmt.Sprintf("lockkeeper undo %d undoes it, when its lock is released", l.Seq))
	return nil
}
