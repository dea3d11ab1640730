package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/acts"
)

// commitWait is how long a commit waits for others, within the limit of a call.
const commitWait = 10 * time.Second

type commitInput struct {
	Message string   `json:"message" jsonschema:"the message of the commit"`
	Paths   []string `json:"paths,omitempty" jsonschema:"files or directories, from the root of the codebase or absolute; default: all that is yours"`
}

// committed is the result of a commit.
type committed struct {
	answer
	Commit string                 `json:"commit,omitempty" jsonschema:"the id of the commit"`
	Branch string                 `json:"branch,omitempty"`
	Paths  []string               `json:"paths,omitempty" jsonschema:"the files in the commit"`
	Left   []acts.LeftUncommitted `json:"left,omitempty" jsonschema:"changes that are not in the commit, and who holds them"`
}

// commit commits the session's own changes with git.
func commit(ctx context.Context, v *call, in commitInput) (out committed, err error) {
	req := acts.CommitRequest{Message: in.Message, Wait: commitWait}
	for _, p := range in.Paths {
		path, err := acts.CommitPath(v.app, v.at(p))
		if err != nil {
			return out, err
		}
		req.Paths = append(req.Paths, path)
	}
	var mine *session.Mine
	err = v.within(ctx, "", func(sess *session.Session) error {
		mine = sess.Mine()
		return nil
	})
	if err != nil {
		return out, err
	}
	// The commit does not run within the session, because git's hooks ask for the changes of the
	// session.
	done, err := acts.Commit(ctx, v.app, mine, req)
	if done != nil {
		out.Commit, out.Branch, out.Paths, out.Left = done.Commit, done.Branch, done.Paths, done.Left
	}
	if err == nil && out.Commit == "" {
		err = errors.New("nothing to commit: git has these files already")
	}
	return out, err
}

func (c *committed) text() string {
	lines := []string{fmt.Sprintf("COMMITTED %.12s on %s: %s.", c.Commit, shown(c.Branch), listed(c.Paths))}
	for _, l := range c.Left[:min(len(c.Left), pathsShown)] {
		line := "left out " + shown(l.Path) + ": " + l.Why
		if l.Holder != "" {
			line = "left out " + shown(l.Path) + ": " + shown(l.Holder) + " holds it"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
