package hook

import (
	"os"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// The functions in this file decide whether a part of a command certainly ran. If in doubt, they
// say no: otherwise its change would count as proven.

// succeeds reports whether a statement that was just read always succeeds.
func (r *reader) succeeds(s *syntax.Stmt) bool {
	if s.Negated || len(s.Redirs) > 0 {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return c.Op == syntax.AndStmt && r.succeeds(c.X) && r.succeeds(c.Y)
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return false
		}
		switch c.Args[0].Lit() {
		case "cd":
			info, err := os.Stat(r.dir)
			return len(c.Args) == 2 && err == nil && info.IsDir()
		case "echo", "pwd", "true":
			return true
		}
	}
	return false
}

// leaves reports whether a command may stop the commands after it or change their meaning.
func leaves(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"exit", "return", "exec", "break", "continue", "set", "shopt", "trap", "kill", "alias", "enable", "hash", "source", ".", ""}, args[0])
}
