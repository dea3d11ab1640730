package hook

import (
	"os"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// What a command has certainly run is known of little. When in doubt it has not: its change
// would pass for proven.

// succeeds reports whether a statement that was just read cannot but succeed.
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

// leaves reports whether a command may end what follows, or give it another meaning.
func leaves(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"exit", "return", "exec", "break", "continue", "set", "shopt", "trap", "kill", "alias", "enable", "hash", "source", ".", ""}, args[0])
}
