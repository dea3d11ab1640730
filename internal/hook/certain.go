package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What a command has certainly shown, or run, is known of few. When in doubt it has not: who
// takes a file for seen writes over what somebody else put there.

// diverted reports whether what a statement prints goes elsewhere than to who called.
func diverted(s *syntax.Stmt) bool {
	return slices.ContainsFunc(s.Redirs, func(d *syntax.Redirect) bool {
		switch d.Op {
		case syntax.RdrOut, syntax.RdrClob, syntax.AppOut, syntax.DplOut:
			return d.N == nil || d.N.Value == "1"
		case syntax.RdrAll, syntax.AppAll:
			return true
		}
		return false
	})
}

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

// shows reports whether a program that prints files prints all of each, with these options.
func shows(program string, options []string) bool {
	if dir := filepath.Dir(program); strings.Contains(program, "/") && dir != "/bin" && dir != "/usr/bin" {
		return false
	}
	letters, long := "AbeEntTuv", []string{"--number", "--show-all"}
	switch filepath.Base(program) {
	case "nl":
		letters, long = "ab", nil // -ba numbers all lines
	case "bat", "batcat":
		letters, long = "npP", []string{"--plain", "--number", "--paging=never", "--color=never", "--style=plain"}
	}
	return !slices.ContainsFunc(options, func(o string) bool {
		return !slices.Contains(long, o) && (o == "-b" || strings.Trim(o[1:], letters) != "")
	})
}

// reads takes in files that are shown.
func (r *reader) reads(operands []string) {
	if r.hidden || !r.certain() {
		return
	}
	for _, f := range operands {
		if f != "" && f != "-" {
			r.plan.Reads = append(r.plan.Reads, Touch{File: absolute(r.dir, f), Whole: true})
		}
	}
}

// maxShown is how much of what a command prints Claude Code shows; other hosts may show less.
const maxShown = 30_000

// fitting is the files that a command shows, unless they may be cut.
func fitting(files []Touch) []Touch {
	var size int64
	for _, f := range files {
		if info, err := os.Stat(f.File); err == nil {
			size += info.Size()
		}
	}
	if size > maxShown {
		return nil
	}
	return files
}
