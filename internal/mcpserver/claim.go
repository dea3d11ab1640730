package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lockkeeper/internal/session"
)

// addTools adds every tool. There is none that takes something away from somebody.
func (s *Server) addTools() {
	add(s, &mcp.Tool{Name: "check", Title: "Look whether files are free", Annotations: reads(),
		Description: "Look whether files could be written now, and who has them otherwise. Nothing is claimed."}, check)
	add(s, &mcp.Tool{Name: "claim", Title: "Claim files", Annotations: keeps(),
		Description: "Claim files for writing, all of them or none, before you change them. They are yours until release, until you end, or until 15 minutes after your last call. Never waits: what somebody else has is refused, and you are told when it is free."}, claim)
	add(s, &mcp.Tool{Name: "release", Title: "Give files back", Annotations: keeps(),
		Description: "Give back all files that this session has claimed. Do it as soon as you are done with them."}, release)
	add(s, &mcp.Tool{Name: "status", Title: "Who is at work", Annotations: reads(),
		Description: "Who works on this codebase now, who holds which files since when, who waits, and what you hold yourself."}, status)
	add(s, &mcp.Tool{Name: "why", Title: "Why a file is locked", Annotations: reads(),
		Description: "Say of one file who holds it and what for, who waits for it, and what happened to it lately."}, why)
	add(s, &mcp.Tool{Name: "write", Title: "Write a file", Annotations: changes(),
		Description: "Write or delete one file through the gate, which claims it for you first. To replace a file that is there, say with base what you have read: the SHA-256 of its content. What is refused is kept, and a person can land it."}, write)
	add(s, &mcp.Tool{Name: "defer", Title: "Change a file later", Annotations: keeps(),
		Description: "Have a change of a file that somebody else holds land by itself once the file is free: a unified diff of that file, or its whole new content. If it does not fit any more then, it is kept for a person."}, deferPatch)
	add(s, &mcp.Tool{Name: "report_gap", Title: "Report a missing file", Annotations: keeps(),
		Description: "Record that the work needs a change of a file which it may not change, with the reason. A person sees it."}, reportGap)
	add(s, &mcp.Tool{Name: "ask_for_more", Title: "Ask for more", Annotations: keeps(),
		Description: "Ask for files beyond what you were given, with the reason. It is recorded as a gap, and as a follow-up item that a person decides about. It gives you nothing now: go on with what you have."}, askForMore)
}

func reads() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
}

func keeps() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{DestructiveHint: new(bool), IdempotentHint: true, OpenWorldHint: new(bool)}
}

func changes() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{IdempotentHint: true, OpenWorldHint: new(bool)}
}

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
	Path string             `json:"path"`
	Free bool               `json:"free"`
	By   []session.Obstacle `json:"by,omitempty" jsonschema:"who is in the way"`
}

func check(ctx context.Context, v *visit, in pathsInput) (out checked, err error) {
	paths, err := v.files(in.Paths)
	if err != nil {
		return out, err
	}
	return out, v.sit(ctx, "", func(seat *session.Seat) error {
		found, err := seat.InTheWay(ctx, paths...)
		by := map[string][]session.Obstacle{}
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
		line := f.Path + ": free"
		if !f.Free {
			line = f.Path + ": " + f.By[0].Holder.String()
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
	return out, v.sit(ctx, in.About, func(seat *session.Seat) (err error) {
		if out.Refused, err = seat.Claim(ctx, list...); err != nil {
			return err
		}
		if len(out.Refused) == 0 {
			out.Claimed = paths
			if out.Notes, err = seat.Elsewhere(list); err != nil {
				return err
			}
		}
		out.Holds, err = seat.Holds(ctx)
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

type nothing struct{}

// released is what a session has given back.
type released struct {
	answer
	Released []string `json:"released,omitempty"`
}

func release(ctx context.Context, v *visit, _ nothing) (out released, err error) {
	return out, v.sit(ctx, "", func(seat *session.Seat) (err error) {
		if out.Released, err = seat.Holds(ctx); err != nil {
			return err
		}
		return seat.Release(ctx)
	})
}

func (r *released) text() string { return "Released: " + listed(r.Released) + "." }

// pathsShown is how many paths a line of text has.
const pathsShown = 20

// listed is paths in a line.
func listed(paths []string) string {
	switch n := len(paths); {
	case n == 0:
		return "nothing"
	case n > pathsShown:
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:pathsShown], ", "), n-pathsShown)
	}
	return strings.Join(paths, ", ")
}
