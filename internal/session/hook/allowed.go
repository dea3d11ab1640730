package hook

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The tables in this file are allowlists. They name what is known to write no file and to run
// no other program. A program, subcommand, option or variable that is missing makes a command
// opaque, which costs a snapshot and nothing else.

// allowed lists options, as in "-l -n= --color? -#". An option with "=" is followed by a value,
// in the same word or in the next. One with "?" has a value only in the same word. "-#" stands
// for a number, as in head -5.
type allowed string

// operands returns the words that are no options. ok is false if a word is unknown, or is an
// option that is not allowed. Abbreviated options are not allowed.
func (o allowed) operands(args []string) (operands []string, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return append(operands, args[i+1:]...), true
		case a == "":
			return nil, false
		case len(a) == 1 || a[0] != '-':
			operands = append(operands, a)
			continue
		}
		next, ok := o.takes(a)
		if !ok {
			return nil, false
		}
		if next {
			if i++; i == len(args) || args[i] == "" {
				return nil, false
			}
		}
	}
	return operands, true
}

// takes reports whether a word with options is allowed, and whether the next word belongs to
// it.
func (o allowed) takes(word string) (next, ok bool) {
	name, _, joined := strings.Cut(word, "=")
	if kind, is := o.kind(name); is {
		return kind == "=" && !joined, !joined || kind != ""
	}
	if _, number := o.kind("-#"); number && strings.Trim(word[1:], "0123456789") == "" {
		return false, true
	}
	if strings.HasPrefix(word, "--") {
		return false, false
	}
	for j := 1; j < len(word); j++ {
		kind, is := o.kind("-" + word[j:j+1])
		if !is || kind != "" {
			return kind == "=" && j+1 == len(word), is
		}
	}
	return false, true
}

// kind returns what follows an option in the list: "", "=" or "?".
func (o allowed) kind(name string) (kind string, is bool) {
	for f := range strings.FieldsSeq(string(o)) {
		if rest, has := strings.CutPrefix(f, name); has && (rest == "" || rest == "=" || rest == "?") {
			return rest, true
		}
	}
	return "", false
}

// harmless lists programs that neither remove nor overwrite content and run no other program,
// whatever their options and operands are.
func harmless() []string {
	return []string{"ls", "cat", "nl", "head", "tail", "grep", "egrep", "fgrep", "wc", "cut", "tr", "diff", "cmp", "comm", "stat", "du", "df", "echo", "true", "false", ":",
		"pwd", "which", "type", "whereis", "basename", "dirname", "realpath", "readlink", "printenv", "id", "whoami", "uname", "ps", "free", "sleep", "seq", "expr", "bc", "jq",
		"od", "hexdump", "strings", "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "column", "fold", "paste", "join", "tac", "rev", "expand", "unexpand", "nproc",
		"uptime", "umask", "pgrep", "cal", "date", "kill", "mkdir", "touch", "chmod", "chown", "chgrp", "rmdir", "mktemp", "ping", "apply_patch", "applypatch"}
}

// harmlessWith returns the options with which a program is as harmless as those above, and
// whose operands are files to read or words to print.
func harmlessWith(program string) (allowed, bool) {
	switch program {
	case "bat", "batcat":
		return "-n -p -A -l= -r= --style= --color= --plain --number --line-range= --language= --paging= --decorations= --wrap= --show-all", true
	case "less":
		return "-N -R -S -F -X -i -I -n -M -m -e -E -r -s -f", true
	case "more":
		return "-#", true
	case "file":
		return "-b -i -L -h -k -n -N -r -0 -s --brief --mime --mime-type --mime-encoding --dereference --no-dereference --extension", true
	case "jobs":
		return "-l -p -r -s -n", true
	case "wait":
		return "-n -f", true
	case "man":
		return "-k -f", true
	case "trash", "clear":
		return "", true
	case "lsof":
		return "-i? -p= -n -P -t -u= -c= -a -d= -F? -l -w", true
	case "tree":
		return "-a -d -l -f -x -L= -P= -I= -s -h -u -g -p -D -F -q -N -Q -r -t -c -U -v -n -C -A -S -i -J -X --noreport --dirsfirst --filesfirst --prune --gitignore --du --si " +
			"--inodes --device --filelimit= --charset= --matchdirs --ignore-case --sort= --timefmt=", true
	case "rg":
		return "-n -i -l -c -w -v -o -s -S -x -q -u -L -H -I -N -0 -F -P -U -a -p -b -. -e= -g= -t= -T= -A= -B= -C= -m= -M= -r= -j= -d= -f= --hidden --no-ignore --no-ignore-vcs --files " +
			"--type= --type-not= --glob= --iglob= --regexp= --max-count= --max-depth= --max-columns= --json --count --count-matches --stats --sort= --sortr= --color= --heading " +
			"--no-heading --line-number --no-line-number --with-filename --no-filename --files-with-matches --files-without-match --only-matching --ignore-case --smart-case " +
			"--case-sensitive --word-regexp --line-regexp --fixed-strings --pcre2 --multiline --multiline-dotall --invert-match --replace= --context= --after-context= " +
			"--before-context= --follow --text --trim --vimgrep --column --quiet --type-list --null --passthru --no-messages --no-config --threads=", true
	case "ag":
		return "-i -s -S -l -L -c -w -v -Q -o -u -a -t -U -f -0 -g= -G= -A= -B= -C= -m= --hidden --ignore= --ignore-dir= --nocolor --nogroup --color --group --depth= --literal " +
			"--files-with-matches --count --word-regexp --column --numbers --nonumbers --smart-case --ignore-case", true
	}
	return "", false
}

// harmlessActs returns the subcommands of a program that remove and overwrite no content, with
// their options.
func harmlessActs(program string) map[string]allowed {
	const npm, ps = "-g -a -l --global --all --json --long --parseable --depth=", "-a -q --all --quiet --no-trunc --filter= -f= --format= "
	switch program {
	case "go":
		return map[string]allowed{"version": "-m -v", "help": "", "doc": "-all -src -u -short -c -cmd", "vet": "-json -tags= -v -c=", "env": "-json -changed",
			"list": "-f= -json? -deps -test -e -m -tags= -find -versions -u -retracted"}
	case "npm":
		return map[string]allowed{"ls": npm, "list": npm, "view": npm, "outdated": npm, "why": npm}
	case "pip", "pip3":
		return map[string]allowed{"list": "-o --outdated --format= --not-required --user", "show": "-f --files", "freeze": "-l --all --user --local"}
	case "docker", "podman":
		return map[string]allowed{"ps": ps + "-l -s -n= --last= --size --latest", "images": ps + "--digests", "inspect": "-f= -s --format= --size --type=",
			"logs": "-f -t -n= --follow --tail= --since= --until= --timestamps --details"}
	case ownProgram:
		return map[string]allowed{"status": "--json --short", "why": "--json", "help": ""}
	}
	return nil
}

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

// isSet reports whether set changes only when a shell stops, what it prints, and its
// parameters.
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

// isTarList reports whether tar only lists a file of this machine.
func isTarList(args []string) bool {
	return len(args) > 0 && patterns().tarList.MatchString(args[0]) &&
		!slices.ContainsFunc(args[1:], func(a string) bool { return a == "" || a[0] == '-' || strings.Contains(a, ":") })
}

// isNumber reports whether a shell that evaluates a text finds only a number in it.
func isNumber(text string) bool { return patterns().number.MatchString(text) }

// isName reports whether a text is the name of a shell variable, and nothing else.
func isName(text string) bool { return patterns().name.MatchString(text) }

// steersNothing reports whether no shell and no program heeds a variable, unless it is
// exported. All others with small letters have a meaning in zsh or bash.
func steersNothing(name string) bool {
	return patterns().small.MatchString(name) && !slices.Contains([]string{"path", "fpath", "cdpath", "manpath", "mailpath", "fignore", "module_path", "psvar", "prompt", "watch",
		"histchars", "auto_resume", "argv", "status", "pipestatus", "signals", "aliases", "galiases", "saliases", "functions", "commands", "options", "parameters", "modules",
		"dirstack", "history", "historywords", "nameddirs", "userdirs", "usergroups", "builtins", "reswords", "patchars", "mapfile", "widgets", "keymaps", "termcap", "terminfo",
		"zsh_eval_context", "zsh_scheduled_events"}, name)
}

// isPlainSetting reports whether an assignment before a program changes only what it prints.
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
