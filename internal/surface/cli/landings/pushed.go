package landings

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/git"
	"lockkeeper/internal/git/coverage"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// pushedChange is a file that was committed while another holder had it.
type pushedChange struct {
	Path    string    `json:"path"`
	Commit  string    `json:"commit"`
	At      time.Time `json:"committed_at"`
	Holder  string    `json:"holder"`
	GrantID string    `json:"grant_id"`
	From    time.Time `json:"held_from"`
}

func (p *program) pushedCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pushed",
		Short: "Check the commits of a push",
		Long: `Read from standard input what git gives a pre-push hook. The exit code is 5 if a commit
to be pushed changes a file that another holder has, and is newer than that holder's lock.
Such a commit bypassed the pre-commit hook. If the holder committed its own
work, the push passes when the holder has released the file.

lockkeeper init --git-push-hook makes git run this before each push.`,
		Example: `  echo "refs/heads/main $(git rev-parse HEAD) refs/heads/main $(git rev-parse @{u})" | lockkeeper gate pushed`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if root, err := project.IsRoot(p.Settings()); err != nil || !root {
				return p.noRoot(cmd.Context(), err)
			}
			lines, err := io.ReadAll(p.In)
			if err != nil {
				return err
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.pushed(cmd, a, string(lines)) })
		},
	}
}

func (p *program) pushed(cmd *cobra.Command, a *project.Project, lines string) error {
	ctx, stop := command.Interruptible(cmd.Context())
	defer stop()
	changes, err := git.NewWorkTree(a.Root.Dir(), p.Dir, p.Env).Pushed(ctx, lines)
	if err != nil {
		return command.Interrupted(ctx, err)
	}
	mine, err := p.Mine(ctx)
	if err != nil {
		return err
	}
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	held, err := coverage.HeldByOthers(ctx, a, mine, paths)
	if err != nil {
		return command.Interrupted(ctx, err)
	}
	var found []pushedChange
	for _, c := range changes {
		if g := held[c.Path]; g != nil && c.At.Unix() >= g.AcquiredAt.Unix() { // git stores times in seconds
			found = append(found, pushedChange{Path: c.Path, Commit: c.Commit, At: c.At, Holder: g.Holder, GrantID: g.ID, From: g.AcquiredAt})
		}
	}
	return p.showPushed(found)
}

func (p *program) showPushed(found []pushedChange) error {
	if p.JSON {
		if err := p.PrintJSON(map[string]any{"held": acts.OrEmpty(found)}); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		return nil
	}
	if !p.JSON {
		for _, c := range found {
			fmt.Fprintf(p.Out, "held  %s  %s, grant %s, held since %s; commit %.12s at %s\n", term.Clean(c.Path), term.Clean(c.Holder), lockkeeper.ShortID(c.GrantID), term.Stamp(c.From), c.Commit, term.Stamp(c.At))
		}
		p.Say("others hold files that were committed meanwhile: " + term.Counted(len(found), "change"))
		p.Advise("wait until they are free, then push: lockkeeper status; a person may push with git push --no-verify")
	}
	return &command.ExitError{Code: command.ExitViolation}
}
