package landings

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// commitWait is how long a commit waits for others by default.
const commitWait = time.Minute

type commitOptions struct {
	message []string
	file    string
	wait    term.Duration
	dryRun  bool
}

func (p *program) commitCommand() *cobra.Command {
	o := commitOptions{wait: term.Duration(commitWait)}
	cmd := &cobra.Command{
		Use:   "commit -m MESSAGE [PATH…]",
		Short: "Commit your own changes with git",
		Long: `Make a git commit of exactly your own changes: files that you hold, and files that you
changed last and nobody holds now, through the gate, under a lock or in your session.
With paths, it commits only what changed there; a named file that nobody holds needs no
lock.

Files of others stay out, also if they are staged, and stay staged. A named file that
another holder has is refused with exit code 3. Commits run one after the other, and
nobody can acquire a file while it is committed. Git's hooks run and may refuse.

The commit has your files as they are in the work tree, whatever is staged.`,
		Example: `  lockkeeper commit -m "Rate-limit login"
  lockkeeper commit -m "Rate-limit login" app/models/user.rb test
  lockkeeper commit --dry-run
  lockkeeper commit -F message.txt --json`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := p.commitMessage(o)
			if err != nil {
				return err
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.commit(cmd, a, o, text, args) })
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.message, "message", "m", nil, "the `message`; further ones are paragraphs")
	f.StringVarP(&o.file, "file", "F", "", "read the message from a `file`; - is standard input")
	f.Var(&o.wait, "wait", "how long to wait for other commits")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "only list what would be committed")
	return cmd
}

func (p *program) commitMessage(o commitOptions) (string, error) {
	if o.file == "" {
		return strings.Join(o.message, "\n\n"), nil
	}
	if len(o.message) > 0 {
		return "", &lockkeeper.InputError{Field: "message", Value: o.file, Reason: "given twice, with -m and with -F", Next: "give one of them"}
	}
	if o.file == "-" {
		text, err := io.ReadAll(p.In)
		return string(text), err
	}
	text, err := os.ReadFile(p.Path(o.file))
	if err != nil {
		return "", &lockkeeper.InputError{Field: "message", Value: o.file, Reason: err.Error(), Next: "name a file that you may read, or - for standard input"}
	}
	return string(text), nil
}

func (p *program) commit(cmd *cobra.Command, a *project.Project, o commitOptions, text string, args []string) error {
	ctx, stop := command.Interruptible(cmd.Context())
	defer stop()
	req := acts.CommitRequest{Message: text, Wait: time.Duration(o.wait), DryRun: o.dryRun}
	for _, arg := range args {
		path, err := acts.CommitPath(a, arg)
		if err != nil {
			return err
		}
		req.Paths = append(req.Paths, path)
	}
	mine, err := p.Mine(ctx)
	if err != nil {
		return err
	}
	done, err := acts.Commit(ctx, a, mine, req)
	if err != nil {
		return command.Interrupted(ctx, err)
	}
	return p.showCommitted(done, o)
}

func (p *program) showCommitted(done *acts.Committed, o commitOptions) error {
	if p.JSON {
		return p.PrintJSON(done)
	}
	did := "committed"
	if o.dryRun {
		did = "yours"
	}
	for _, path := range done.Paths {
		fmt.Fprintf(p.Out, "%-9s  %s\n", did, term.Clean(path))
	}
	for _, l := range done.Left {
		why := l.Why
		switch {
		case l.From != "":
			why = fmt.Sprintf("%s holds %s, which was moved there", term.Clean(l.Holder), term.Clean(l.From))
		case l.Holder != "":
			why = term.Clean(l.Holder) + " holds it"
		}
		fmt.Fprintf(p.Out, "left out   %s: %s\n", term.Clean(l.Path), why)
	}
	switch {
	case o.dryRun:
		fmt.Fprintln(p.Out, "nothing is committed yet: "+term.Counted(len(done.Paths), "file"))
	case done.Commit == "" && len(done.Left) > 0 && len(done.Paths) == 0:
		return lockkeeper.WithNext(fmt.Errorf("nothing to commit: %s: %s", done.Left[0].Path, done.Left[0].Why), "lockkeeper gate changes")
	case done.Commit == "":
		return errors.New("nothing to commit: git has these files already")
	default:
		fmt.Fprintf(p.Out, "commit %.12s on %s: %s\n", done.Commit, term.Clean(done.Branch), term.Counted(len(done.Paths), "file"))
	}
	return nil
}
