package mcp

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addTools adds every tool. No tool revokes a lock of another holder.
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

// nothing is the input of tools that need none.
type nothing struct{}

// pathsShown is how many paths a line of text has.
const pathsShown = 20

// listed is paths in a line.
func listed(paths []string) string {
	if len(paths) == 0 {
		return "nothing"
	}
	var names []string
	for _, p := range paths[:min(len(paths), pathsShown)] {
		names = append(names, shown(p))
	}
	text := strings.Join(names, ", ")
	if n := len(paths); n > pathsShown {
		text += fmt.Sprintf(" and %d more", n-pathsShown)
	}
	return text
}

// shown is what others chose, on one line: a name can have a line break in it, and what
// follows that would read as if we had said it.
func shown(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}
