package hook

import (
	_ "embed" // embeds harmless.txt
	"regexp"
	"slices"
	"strings"
	"sync"
)

// allowed lists options, as in "-l -n= --color? -#". harmless.txt explains the notation.
type allowed string

// operands returns the words that are not options. ok is false if a word is unknown or is an
// option that is not allowed. Abbreviated options are not allowed.
func (o allowed) operands(args []string) (operands []string, ok bool) {
	w := o.read(args)
	return w.all(), w.known
}

// kind returns the suffix of an option in the list: "", "=" or "?".
func (o allowed) kind(name string) (kind string, is bool) {
	for f := range strings.FieldsSeq(string(o)) {
		if rest, has := strings.CutPrefix(f, name); has && (rest == "" || rest == "=" || rest == "?") {
			return rest, true
		}
	}
	return "", false
}

//go:embed harmless.txt
var harmlessText string

// anyOptions and byRule replace the options in harmless.txt.
const anyOptions, byRule allowed = "*", "rule"

// harmless returns the lines of harmless.txt: options by program, as in "ls", or by program and
// subcommand, as in "git/log". No program has a slash in its name.
var harmless = sync.OnceValue(func() map[string]allowed {
	table, shared := map[string]allowed{}, strings.NewReplacer()
	var known []string
	for line := range strings.SplitSeq(strings.ReplaceAll(harmlessText, "\n\t", " "), "\n") {
		names, options, ok := strings.Cut(line+" ", " -> ")
		if !ok || line[0] == '#' {
			continue
		}
		if names[0] == '$' {
			known = append(known, names, options)
			shared = strings.NewReplacer(known...)
			continue
		}
		for name := range strings.SplitSeq(names, ", ") {
			table[strings.ReplaceAll(name, " ", "/")] = allowed(strings.TrimSpace(shared.Replace(options)))
		}
	}
	return table
})

// isVersioned reports whether a program only prints if its only argument is --version or
// --help.
func isVersioned(program string) bool {
	return slices.Contains([]string{"go", "node", "npm", "npx", "pnpm", "yarn", "bun", "deno", "python", "python2", "python3", "pip", "pip3", "uv", "ruby", "bundle", "gem", "perl",
		"php", "java", "javac", "gcc", "g++", "cc", "clang", "make", "cmake", "cargo", "rustc", "docker", "podman", "psql", "sqlite3", "curl", "wget", "tar", "sed", "find", "gh",
		"bash", "sh", "zsh", "tsc", "rg", "fd", "bat", ownProgram}, program)
}

// isTest reports whether test and [ only compare: the shell evaluates the operand of -v and -R.
func isTest(args []string) bool {
	known := strings.Fields("-a -b -c -d -e -f -g -h -k -p -r -s -t -u -w -x -G -L -N -O -S -n -z -o -eq -ne -lt -le -gt -ge -nt -ot -ef -")
	return !slices.ContainsFunc(args, func(a string) bool {
		return a == "" || a[0] == '-' && !slices.Contains(known, a) && !isNumber(a)
	})
}

// isPrintf reports whether printf only prints: -v and %n assign a variable.
func isPrintf(args []string) bool {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	return len(args) == 0 || args[0] != "" && args[0][0] != '-' && !patterns().assigns.MatchString(args[0])
}

// isSet reports whether set changes only the shell's exit rules, its tracing and its
// positional parameters.
func isSet(args []string) bool {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return true
		case len(a) < 2 || a[0] != '-' && a[0] != '+' || strings.Trim(a[1:], "euxo") != "":
			return false
		case strings.Contains(a, "o"):
			if i++; i == len(args) || !slices.Contains([]string{"pipefail", "errexit", "nounset", "xtrace"}, args[i]) {
				return false
			}
		}
	}
	return len(args) > 0
}

// isTarList reports whether tar only lists a local archive.
func isTarList(args []string) bool {
	return len(args) > 0 && patterns().tarList.MatchString(args[0]) &&
		!slices.ContainsFunc(args[1:], func(a string) bool { return a == "" || a[0] == '-' || strings.Contains(a, ":") })
}

// isNumber reports whether a shell that evaluates the text finds only a number in it.
func isNumber(text string) bool { return patterns().number.MatchString(text) }

// isName reports whether a text is the name of a shell variable.
func isName(text string) bool { return patterns().name.MatchString(text) }

// steersNothing reports whether shells and programs ignore a variable unless it is exported.
// The listed lower-case names have a meaning in zsh or bash.
func steersNothing(name string) bool {
	return patterns().small.MatchString(name) && !slices.Contains([]string{"path", "fpath", "cdpath", "manpath", "mailpath", "fignore", "module_path", "psvar", "prompt", "watch",
		"histchars", "auto_resume", "argv", "status", "pipestatus", "signals", "aliases", "galiases", "saliases", "functions", "commands", "options", "parameters", "modules",
		"dirstack", "history", "historywords", "nameddirs", "userdirs", "usergroups", "builtins", "reswords", "patchars", "mapfile", "widgets", "keymaps", "termcap", "terminfo",
		"zsh_eval_context", "zsh_scheduled_events"}, name)
}

// isPlainSetting reports whether an assignment before a program changes only the program's output.
func isPlainSetting(name, value string) bool {
	return value != "" && !strings.Contains(value, "/") && slices.Contains([]string{"LC_ALL", "LANG", "LC_COLLATE", "LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_MESSAGES", "TZ",
		"NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES"}, name)
}

type knownPatterns struct{ number, name, small, assigns, tarList, bracket *regexp.Regexp }

var patterns = sync.OnceValue(func() knownPatterns {
	return knownPatterns{
		number:  regexp.MustCompile(`^[-+]?[0-9]+$`),
		name:    regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`),
		small:   regexp.MustCompile(`^[a-z_]*[a-z][a-z0-9_]*$`),
		assigns: regexp.MustCompile(`%[^a-zA-Z%]*[hlLqjzt]*n`),
		tarList: regexp.MustCompile(`^-?t[vzjJ]*f?$`),
		bracket: regexp.MustCompile(`\[\^?[^]\[\\]+\]`),
	}
})
