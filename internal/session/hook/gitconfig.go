package hook

import (
	"slices"
	"strings"
)

// A Setting is a setting of git that decides which programs git and its hooks start, and that a
// command changes in the work tree Dir.
type Setting struct{ Name, Dir string }

// configGrammar has the options of git config that take a value.
const configGrammar allowed = "-f= --file= --blob= --type= -t= --default= --comment= --value= --url="

// configures notes what git config changes: an alias, which the command may use afterwards, a
// file, or a setting that only a person changes.
func (r *reader) configures(args []string, dir string) {
	w := configGrammar.read(args)
	operands := w.all()
	act := ""
	if len(operands) > 0 && slices.Contains([]string{"list", "get", "set", "unset", "rename-section", "remove-section", "edit"}, operands[0]) {
		act, operands = operands[0], operands[1:]
	}
	for _, option := range []string{"edit", "unset", "unset-all", "add", "replace-all", "rename-section", "remove-section"} {
		if w.has("--"+option) || option == "edit" && w.has("-e") {
			act = option
		}
	}
	switch {
	case act == "list" || act == "get", act == "" && (len(operands) < 2 || w.has("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--get-colorbool")):
		return
	case act == "edit":
		operands = []string{"--edit"}
	case act == "rename-section" && len(operands) > 1:
		operands = operands[1:]
	case len(operands) == 0:
		return
	}
	if files := w.values("-f", "--file"); len(files) > 0 {
		in := *r
		in.dir = dir
		in.writes(false, files...)
		return
	}
	key, value := operands[0], ""
	if len(operands) > 1 {
		value = operands[1]
	}
	if name, is := strings.CutPrefix(strings.ToLower(key), "alias."); is && value != "" {
		r.aliases[name] = value
	}
	whole := act == "edit" || act == "rename-section" || act == "remove-section"
	if startsPrograms(key, value, whole) {
		r.plan.Settings = append(r.plan.Settings, Setting{"git config " + key, dir})
	}
}

// startsPrograms reports whether a setting of git, or any setting of a section if whole is set,
// makes git start a program that nobody invokes. Aliases do not: only a person uses them.
func startsPrograms(key, value string, whole bool) bool {
	section, rest, _ := strings.Cut(strings.ToLower(key), ".")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	names := map[string]string{"--edit": "*", "": "*", // the empty name is a key that the shell computes
		"core":     "hookspath fsmonitor sshcommand editor pager askpass gitproxy alternaterefscommand",
		"sequence": "editor", "pager": "*", "interactive": "difffilter", "diff": "external command textconv", "filter": "clean smudge process", "merge": "driver",
		"mergetool": "cmd path", "difftool": "cmd path", "credential": "helper", "gpg": "program defaultkeycommand", "include": "path", "includeif": "path", "init": "templatedir",
		"uploadpack": "packobjectshook", "remote": "uploadpack receivepack vcs", "hook": "command", "trailer": "command cmd", "sendemail": "*", "browser": "cmd path", "man": "cmd path",
	}[section]
	switch {
	case names == "":
		return section == "submodule" && name == "update" && strings.HasPrefix(value, "!")
	case whole || names == "*" && section == "":
		return true
	case slices.Contains([]string{"true", "false", "cat", ":"}, value) && name != "hookspath": // these values start no other program
		return false
	}
	return names == "*" || slices.Contains(strings.Fields(names), name)
}
