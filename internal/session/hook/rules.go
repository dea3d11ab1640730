package hook

import (
	"slices"
	"strings"
)

// A rule decides whether a program whose options are allowed is harmless. It gets all arguments,
// and the operands among them. For a subcommand it gets only the words after the subcommand.
type rule func(r *reader, args, operands []string) bool

// ruleOf returns the rule for a program or subcommand of harmless.txt, or nil.
func ruleOf(name string) rule {
	switch name {
	case "rm", "unlink", "shred", "tee", "truncate", "find", "git": // the files of the program are checked, or findEffect and git judge the program
		return func(*reader, []string, []string) bool { return true }
	case "cd", "pushd":
		return func(r *reader, args, _ []string) bool { return r.arrives(args) }
	case "test", "[":
		return ofArgs(isTest)
	case "printf":
		return ofArgs(isPrintf)
	case "set":
		return ofArgs(isSet)
	case "exit", "return", "break", "continue", "shift", "ulimit", "history":
		return ofArgs(func(args []string) bool {
			return !slices.ContainsFunc(args, func(a string) bool { return !isNumber(a) })
		})
	case "read":
		return func(r *reader, args, _ []string) bool { return r.reassigns("-r -s -p= -t= -n= -N= -d= -u=", args) }
	case "unset":
		return func(r *reader, args, _ []string) bool { return r.reassigns("-v", args) }
	case "sh", "bash", "dash", "zsh", "ksh", "ash":
		return ofArgs(func(args []string) bool {
			return len(args) == 2 && (args[0] == "-c" || args[0] == "-lc") && args[1] != ""
		})
	case "eval":
		return ofArgs(func(args []string) bool { return !slices.Contains(args, "") })
	case "dd":
		return ofArgs(func(args []string) bool { return !strings.Contains(strings.Join(args, " "), "notrunc") })
	case "cp", "install":
		return copiesFiles
	case "sort":
		return func(_ *reader, args, operands []string) bool {
			return !slices.ContainsFunc(sortGrammar.read(args).values("-o", "--output"), func(f string) bool { return slices.Contains(operands, f) })
		}
	case "wget":
		return ofArgs(func(args []string) bool {
			return slices.Contains(args, "--spider") || wgetGrammar.read(args).has("-O", "--output-document")
		})
	case "uniq":
		return func(_ *reader, _, operands []string) bool { return len(operands) < 2 }
	case "hostname":
		return func(_ *reader, _, operands []string) bool { return len(operands) == 0 }
	case "sed", "gsed":
		return ofArgs(isPrinting)
	case "awk", "gawk", "mawk":
		return ofArgs(func(args []string) bool {
			text := strings.Join(args, " ")
			return !strings.ContainsAny(text, ">|@") && !strings.Contains(text, "system")
		})
	case "tar":
		return ofArgs(isTarList)
	case "tput":
		return ofArgs(func(args []string) bool {
			return len(args) > 0 && slices.Contains([]string{"cols", "lines", "colors", "bold", "sgr0", "setaf", "setab"}, args[0])
		})
	case "go/env":
		return func(_ *reader, _, operands []string) bool { return !strings.Contains(strings.Join(operands, " "), "=") }
	case ownProgram + "/rescue":
		return ofArgs(func(args []string) bool { return len(args) > 0 && (args[0] == "list" || args[0] == "show") })
	}
	return nil
}

func ofArgs(is func(args []string) bool) rule {
	return func(_ *reader, args, _ []string) bool { return is(args) }
}

// copiesFiles reports whether a copy replaces only the files that it names. It returns false if
// the command copies a directory, or copies through a link to a directory.
func copiesFiles(r *reader, _, operands []string) bool {
	return !slices.ContainsFunc(operands, func(f string) bool {
		file := absolute(r.dir, f)
		return isDir(file) && f != operands[len(operands)-1] || isLinkToDir(file)
	})
}
