package mcp

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper/internal/session"
)

type pathsInput struct {
	Paths []string `json:"paths" jsonschema:"files, from the root of the codebase or absolute"`
}

// checked is which files are free.
type checked struct {
	answer
	Free  bool        `json:"free" jsonschema:"whether all of them are"`
	Files []fileState `json:"files"`
}

type fileState struct {
	Path string            `json:"path"`
	Free bool              `json:"free"`
	By   []session.Blocker `json:"by,omitempty" jsonschema:"who is in the way"`
}

func check(ctx context.Context, v *visit, in pathsInput) (out checked, err error) {
	paths, err := v.files(in.Paths)
	if err != nil {
		return out, err
	}
	return out, v.sit(ctx, "", func(sess *session.Session) error {
		found, err := sess.Blockers(ctx, paths...)
		by := map[string][]session.Blocker{}
		for _, o := range found {
			by[o.Path] = append(by[o.Path], o)
		}
		out.Free = len(found) == 0
		for _, p := range paths {
			out.Files = append(out.Files, fileState{Path: p, Free: by[p] == nil, By: by[p]})
		}
		return err
	})
}

func (c *checked) text() string {
	var lines []string
	for _, f := range c.Files {
		line := shown(f.Path) + ": free"
		if !f.Free {
			line = shown(f.Path) + ": " + f.By[0].Holder.String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

type claimInput struct {
	Paths []string `json:"paths" jsonschema:"files that are to be changed, from the root of the codebase or absolute"`
	About string   `json:"about,omitempty" jsonschema:"what you work on, in a few words; others see it"`
}

// claimed is what a session has.
type claimed struct {
	answer
	Claimed []string `json:"claimed,omitempty" jsonschema:"what was asked for, and is held now"`
	Holds   []string `json:"holds,omitempty" jsonschema:"all that the session holds"`
	Notes   []string `json:"notes,omitempty" jsonschema:"what is to be known of these files"`
}

func claim(ctx context.Context, v *visit, in claimInput) (out claimed, err error) {
	paths, err := v.files(in.Paths)
	if err != nil {
		return out, err
	}
	var list []session.Write
	for _, p := range paths {
		list = append(list, session.Write{Path: p})
	}
	return out, v.sit(ctx, in.About, func(sess *session.Session) (err error) {
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

// released is what a session has given back.
type released struct {
	answer
	Released []string `json:"released,omitempty"`
}

func release(ctx context.Context, v *visit, _ nothing) (out released, err error) {
	return out, v.sit(ctx, "", func(sess *session.Session) (err error) {
		if out.Released, err = sess.Holds(ctx); err != nil {
			return err
		}
		return sess.Release(ctx)
	})
}

func (r *released) text() string { return "Released: " + listed(r.Released) + "." }
