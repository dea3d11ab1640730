package mcp

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/acts"
)

type checkInput struct {
	Paths []string `json:"paths,omitempty" jsonschema:"files, from the root of the codebase or absolute"`
	Nodes []string `json:"nodes,omitempty" jsonschema:"nodes of lockkeeper.yaml, such as project/p1/map/m2, with their files; with a slash at the end with all below them"`
}

// checked reports for each file whether it is free, and who holds it.
type checked struct {
	answer
	Free  bool        `json:"free" jsonschema:"whether all files are free"`
	Files []fileState `json:"files"`
}

type fileState struct {
	Path string            `json:"path"`
	Free bool              `json:"free"`
	By   []session.Blocker `json:"by,omitempty" jsonschema:"who holds it"`

	Holder string `json:"holder,omitempty" jsonschema:"who holds a node"`
}

func check(ctx context.Context, v *call, in checkInput) (out checked, err error) {
	var paths []string
	if len(in.Paths) > 0 || len(in.Nodes) == 0 {
		if paths, err = v.files(in.Paths); err != nil {
			return out, err
		}
	}
	return out, v.within(ctx, "", func(sess *session.Session) error {
		found, err := sess.Blockers(ctx, paths...)
		by := map[string][]session.Blocker{}
		for _, o := range found {
			by[o.Path] = append(by[o.Path], o)
		}
		out.Free = len(found) == 0
		for _, p := range paths {
			out.Files = append(out.Files, fileState{Path: p, Free: by[p] == nil, By: by[p]})
		}
		if err != nil {
			return err
		}
		return out.nodes(ctx, v, in.Nodes)
	})
}

// nodes adds for each node whether a write lock on it is free, and otherwise the holder.
func (c *checked) nodes(ctx context.Context, v *call, names []string) error {
	for _, name := range names {
		locks, err := acts.NodeLocks(v.app, lockkeeper.Write, name)
		if err != nil {
			return err
		}
		found, err := v.app.Locks.CheckConflicts(ctx, locks)
		if err != nil {
			return err
		}
		n := fileState{Path: name, Free: len(found) == 0}
		if !n.Free {
			n.Holder, c.Free = found[0].Holder, false
		}
		c.Files = append(c.Files, n)
	}
	return nil
}

func (c *checked) text() string {
	var lines []string
	for _, f := range c.Files {
		line := shown(f.Path) + ": free"
		switch {
		case f.Holder != "":
			line = shown(f.Path) + ": held by " + shown(f.Holder)
		case !f.Free:
			line = shown(f.Path) + ": " + f.By[0].Holder.String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

type claimInput struct {
	Paths []string `json:"paths" jsonschema:"files to change, from the root of the codebase or absolute"`
	About string   `json:"about,omitempty" jsonschema:"what you work on, in a few words; others see it"`
}

type claimed struct {
	answer
	Claimed []string `json:"claimed,omitempty" jsonschema:"requested files that the session now holds"`
	Holds   []string `json:"holds,omitempty" jsonschema:"all files that the session holds"`
	Notes   []string `json:"notes,omitempty" jsonschema:"notes about these files"`
}

func claim(ctx context.Context, v *call, in claimInput) (out claimed, err error) {
	paths, err := v.files(in.Paths)
	if err != nil {
		return out, err
	}
	var list []session.Write
	for _, p := range paths {
		list = append(list, session.Write{Path: p})
	}
	return out, v.within(ctx, in.About, func(sess *session.Session) (err error) {
		if out.Refused, err = sess.Claim(ctx, list...); err != nil {
			return err
		}
		if len(out.Refused) == 0 {
			out.Claimed = paths
			if out.Notes, err = sess.Elsewhere(list); err != nil {
				return err
			}
		}
		out.Holds, err = sess.Holds(ctx)
		return err
	})
}

func (c *claimed) text() string {
	if len(c.Claimed) == 0 {
		return fmt.Sprintf("Nothing was claimed; %s holds %s.", c.Callsign, listed(c.Holds))
	}
	lines := []string{fmt.Sprintf("CLAIMED by %s: %s.", c.Callsign, listed(c.Claimed))}
	return strings.Join(append(lines, c.Notes...), "\n")
}

type released struct {
	answer
	Released []string `json:"released,omitempty"`
}

func release(ctx context.Context, v *call, _ nothing) (out released, err error) {
	return out, v.within(ctx, "", func(sess *session.Session) (err error) {
		if out.Released, err = sess.Holds(ctx); err != nil {
			return err
		}
		return sess.Release(ctx)
	})
}

func (r *released) text() string { return "Released: " + listed(r.Released) + "." }
