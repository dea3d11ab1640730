package landings

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/rescue"
)

type rescueLandOptions struct {
	command.OwnLock
	ontoCurrent    bool
	resolved, base string
	all            bool
	where          string
}

func (p *program) rescueLandCommand() *cobra.Command {
	var o rescueLandOptions
	cmd := &cobra.Command{
		Use:     "land ID… | --all | --where CONDITIONS",
		Aliases: []string{"restore"},
		Short:   "Land kept changes, merged into the files as they are now",
		Long: `Land kept changes through the gate. It acquires the lock on the path and fails with exit
code 3 while another holder has it. With --grant it uses your grant. If the file has
changed since the content was kept, the change is merged into it by lines, so that later
work stays. A change that conflicts is refused: "rescue show --merged" prints the file with
the conflicts marked, and --resolved lands it after you edited it, if the file is still
the one that --base names. A change that has landed is no longer kept.

With several ids, --all or --where it lands what applies, the oldest first, and lists what
stays kept and why. --all and --where choose among the changes that "rescue list" lists. Conditions are separated by commas: batch, by and path match patterns;
text and reason what contains a text; kind and now (unchanged, clean, conflict, unknown,
landed) a word.

--onto-current replaces the file as it is now, without a merge. A directory that was moved
aside cannot be landed; move it back by hand. An agent lands only what it wrote itself.

"rescue restore" is the same command. An uncommitted file that a command of a session
removed or overwrote is restored to its place, also outside of gate.allowed_write_paths.
The file that --onto-current replaces there is kept in turn.`,
		Example: `  lockkeeper rescue land 20260131T090000.123-1b4e28ba
  lockkeeper rescue land --where 'batch=blog/*,reason=coverage'
  lockkeeper rescue show --merged 1b4e28ba >user.rb.merged
  lockkeeper rescue land --resolved user.rb.merged --base "$sha256" 1b4e28ba`,
		Args: func(cmd *cobra.Command, args []string) error {
			chosen := 0
			for _, on := range []bool{len(args) > 0, o.all, o.where != ""} {
				if on {
					chosen++
				}
			}
			one := o.ontoCurrent || o.resolved != "" || o.base != ""
			switch {
			case chosen != 1:
				return command.Usage(cmd, "needs ids of kept changes, --all, or --where")
			case (o.resolved == "") != (o.base == ""):
				return command.Usage(cmd, "--resolved and --base need each other")
			case one && len(args) != 1:
				return command.Usage(cmd, "--onto-current, --resolved and --base take the id of one kept change")
			}
			return nil
		},
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, args []string) error {
			if len(args) == 1 {
				return p.rescueLand(cmd, a, args[0], o)
			}
			return p.rescueLandMany(cmd, a, args, o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.ontoCurrent, "onto-current", false, "replace the file as it is now, without a merge")
	f.StringVar(&o.resolved, "resolved", "", "land the content of this `file`, in which you resolved the conflicts; - is standard input")
	f.StringVar(&o.base, "base", "", "with --resolved: the SHA-256 of the file that it was made from")
	f.BoolVar(&o.all, "all", false, "land all kept changes that apply")
	f.StringVar(&o.where, "where", "", "land the kept changes that meet these `conditions`, such as batch=blog/*")
	cmd.MarkFlagsMutuallyExclusive("onto-current", "resolved")
	o.Flags(f)
	return cmd
}

func (p *program) rescueLand(cmd *cobra.Command, a *project.Project, id string, o rescueLandOptions) error {
	how := acts.Landing{OntoCurrent: o.ontoCurrent, Base: o.base}
	if o.resolved != "" {
		text, err := p.readResolved(o.resolved)
		if err != nil {
			return err
		}
		how.Resolved = &text
	}
	e, l, err := acts.LandRescued(cmd.Context(), a, id, how, p.Changer(a), p.holding(cmd, a, o.OwnLock))
	if err != nil {
		return err
	}
	seq := uint64(0)
	if l != nil {
		seq = l.Seq
	}
	switch {
	case p.JSON:
		return p.PrintJSON(map[string]any{"landing": seq, "path": e.Path, "dropped": id})
	case l == nil:
		_, err = fmt.Fprintf(p.Out, "%s has this content already; dropped %s\n", term.Clean(e.Path), id)
	default:
		_, err = fmt.Fprintf(p.Out, "landing %d: %s; dropped %s\n", seq, term.Clean(e.Path), id)
		if e.Kind == rescue.Uncommitted {
			if o.ontoCurrent {
				p.Advise("lockkeeper rescue list shows what it replaced")
			}
			return err
		}
		p.Advise(command.UndoStep(seq, o.Grant))
	}
	return err
}

// readResolved reads the content that a person merged.
func (p *program) readResolved(name string) (string, error) {
	if name == "-" {
		text, err := io.ReadAll(p.In)
		return string(text), err
	}
	text, err := os.ReadFile(p.Path(name))
	if err != nil {
		return "", &lockkeeper.InputError{Field: "resolved", Value: name, Reason: err.Error(), Next: "name the file with the merged content"}
	}
	return string(text), nil
}

// rescueLandMany lands what applies, and lists what stays kept.
func (p *program) rescueLandMany(cmd *cobra.Command, a *project.Project, ids []string, o rescueLandOptions) error {
	chosen := acts.Chosen{IDs: ids, Where: o.where}
	if o.all {
		chosen.Where = "all"
	}
	list, err := view.New(a).Chosen(cmd.Context(), chosen)
	if err != nil {
		return err
	}
	return p.tellLanded(acts.LandMany(cmd.Context(), a, list, p.Changer(a), p.holding(cmd, a, o.OwnLock)))
}

func (p *program) tellLanded(done acts.LandedMany) error {
	if p.JSON {
		if err := p.PrintJSON(done); err != nil {
			return err
		}
	} else {
		for _, one := range done.Landed {
			fmt.Fprintf(p.Out, "landing %d: %s; dropped %s\n", one.Landing, term.Clean(one.Path), one.ID)
		}
		for _, one := range done.Kept {
			fmt.Fprintf(p.Out, "stays kept: %s, %s: %s\n", rescue.ShortID(one.ID), term.Clean(one.Path), term.Clean(one.Reason))
		}
		fmt.Fprintf(p.Out, "%s landed, %d stayed kept\n", term.Counted(len(done.Landed), "kept change"), len(done.Kept))
		if len(done.Kept) > 0 {
			p.Advise("lockkeeper rescue show " + done.Kept[0].ID)
		}
	}
	switch {
	case done.Failed != nil:
		return done.Failed
	case len(done.Kept) > 0:
		return &command.ExitError{Code: command.ExitCode(&lockkeeper.LockViolationError{})}
	}
	return nil
}
