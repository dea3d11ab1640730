package landings

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/git/coverage"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/lock"
)

// overruleAnswer is what a person types to commit the changes anyway.
const overruleAnswer = "commit"

// overrule lets a person at a terminal commit changes that the hook refuses, and records that. An
// agent is never asked. Git gives its hooks no standard input, so the answer comes from the
// terminal of standard error, as in pagers.
func (p *program) overrule(ctx context.Context, a *project.Project, done *coverage.Changes, o changesOptions, found error) error {
	if _, inside := p.Agent(); inside || p.JSON || !term.IsTerminal(p.Err) {
		return found
	}
	fmt.Fprintf(p.Err, "Type %q to commit these changes anyway, anything else to cancel: ", overruleAnswer)
	line, err := bufio.NewReader(p.Err).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != overruleAnswer {
		return found
	}
	ev := lockkeeper.Event{Kind: lockkeeper.EventDecided, Actor: p.Person(), Reason: "committed although " + reasonOf(done, o)}
	for _, c := range done.List {
		if len(ev.Locks) < lockkeeper.MaxTargets && o.fails(stateOf(c)) {
			ev.Locks = append(ev.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: c.Path, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
		}
	}
	err = a.Locks.Update(ctx, func(tx *lock.Tx) error {
		_, err := tx.Append(ev)
		return err
	})
	if err != nil {
		return errors.Join(err, found)
	}
	return nil
}

// reasonOf describes the changes that a person commits anyway.
func reasonOf(done *coverage.Changes, o changesOptions) string {
	var held []string
	uncovered := 0
	for _, c := range done.List {
		switch state := stateOf(c); {
		case state == coverage.Held:
			held = append(held, term.Clean(c.Holder)+" holds "+term.Clean(c.Path))
		case o.fails(state):
			uncovered++
		}
	}
	if uncovered > 0 {
		held = append(held, "no lock covers "+term.Counted(uncovered, "change"))
	}
	return strings.Join(held, ", ")
}
