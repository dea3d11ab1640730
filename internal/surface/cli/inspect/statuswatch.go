package inspect

import (
	"context"
	"encoding/json"
	"fmt"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/feed"
)

// watchStatus shows the status as it changes: anew to a person, and to a program, a line of
// JSON, when it is another.
func (p *program) watchStatus(ctx context.Context, a *project.Project) error {
	said := ""
	open := func(ctx context.Context) (*feed.Feed, error) { return feed.Open(ctx, a.Store, feed.Options{}) }
	return command.Follow(ctx, open, func(ctx context.Context) error {
		s, err := p.gatherAll(ctx, a)
		if err != nil {
			return err
		}
		if p.JSON {
			line, err := json.Marshal(s)
			if err != nil || string(line) == said {
				return err
			}
			said = string(line)
			_, err = fmt.Fprintln(p.Out, said)
			return err
		}
		if p.HandlesEscapes(p.Out) {
			fmt.Fprint(p.Out, term.ClearScreen)
		} else {
			fmt.Fprintln(p.Out, term.Stamp(p.Now()))
		}
		if err := p.showStatus(s); err != nil {
			return err
		}
		return p.Out.Err
	})
}
