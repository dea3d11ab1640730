package mcp

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addTools registers all tools. No tool releases a lock of another holder.
func (s *Server) addTools() {
	add(s, &mcp.Tool{Name: "check", Title: "Check whether files are free", Annotations: reads(),
		Description: "Check whether you could write files or nodes now, and who holds them if not. Claims nothing."}, check)
	add(s, &mcp.Tool{Name: "claim", Title: "Claim files", Annotations: additive(),
		Description: "Claim files for writing, all or none, before you change them. Your claim ends when you release it, when your session ends, or 15 minutes after your last call. Never waits: if another holder has a file, the call is refused, and you are told when the file is free."}, claim)
	add(s, &mcp.Tool{Name: "release", Title: "Release files", Annotations: additive(),
		Description: "Release all files that this session has claimed. Call it as soon as you are done with them."}, release)
	add(s, &mcp.Tool{Name: "status", Title: "Show who is working", Annotations: reads(),
		Description: "Show who works on this codebase, who holds which files and since when, who waits, and what you hold."}, status)
	add(s, &mcp.Tool{Name: "why", Title: "Explain why a file is locked", Annotations: reads(),
		Description: "Show who holds one file and why, who waits for it, and its recent events."}, why)
	add(s, &mcp.Tool{Name: "write", Title: "Write a file", Annotations: changes(),
		Description: "Claim one file, then write or delete it through the gate. To replace an existing file, give the SHA-256 of the content that you have read as base. Refused content is kept, and a person can land it."}, write)
	add(s, &mcp.Tool{Name: "replace_dir", Title: "Replace a directory", Annotations: changes(),
		Description: "Replace a directory as a whole with a copy of another one in the codebase: at every moment it is the old one or the new one. Name the operation of lockkeeper.yaml that this is. Its locks are held for this call alone, and released. Never waits: if another holder has one of them, nothing is replaced."}, replaceDir)
	add(s, &mcp.Tool{Name: "commit", Title: "Commit your changes", Annotations: additive(),
		Description: "Make a git commit of exactly your own changes: files that you have claimed, and files that you changed last and nobody holds. With paths, it commits only those. Files of others stay out, also staged ones."}, commit)
	add(s, &mcp.Tool{Name: "defer", Title: "Change a file later", Annotations: additive(),
		Description: "Queue a change of a file that another holder has: a unified diff of that file, or its whole new content. It lands when the file is free. If it no longer applies then, it is kept for a person."}, deferPatch)
	add(s, &mcp.Tool{Name: "report_gap", Title: "Report a missing file", Annotations: additive(),
		Description: "Record that your work needs a change of a file that you may not change, with the reason. A person will see it."}, reportGap)
	add(s, &mcp.Tool{Name: "ask_for_more", Title: "Ask for more", Annotations: additive(),
		Description: "Ask for files beyond those you were given, with the reason. The request is recorded as a gap and as a follow-up item that a person decides about. It grants nothing now: continue with the files you have."}, askForMore)
}

func reads() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
}

func additive() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{DestructiveHint: new(bool), IdempotentHint: true, OpenWorldHint: new(bool)}
}

func changes() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{IdempotentHint: true, OpenWorldHint: new(bool)}
}

// nothing is the input of tools without arguments.
type nothing struct{}

// pathsShown is the maximum number of paths in a line of text.
const pathsShown = 20

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

// shown returns foreign text on one line. Otherwise a name with a line break could forge a
// line of the answer.
func shown(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}
