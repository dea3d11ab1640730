package enrol

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// A person may have registered hooks in another way that still does everything that ours do. The
// list shows which differences are accepted. Any other hook differs, because its effect in the
// host is unknown.
//
//	matcher   none, "", "*", ".*", or one that leaves out no more tools than ours
//	timeout   none, if the host's default is longer than ours; or up to twenty times ours
//	command   lockkeeper by its name, its path, or with its directory added to PATH; before a
//	          call also without the small program
//	others    keys that only describe the hook for people

// longest limits a timeout to a multiple of ours. Hosts pass it to timers that ignore very large
// values.
const longest = 20

// forPeople lists keys of a hook that do not change when it runs.
func forPeople() []string { return []string{"name", "description", "statusMessage"} }

// anyTool lists matchers that every host applies to all tools.
func anyTool() []string { return []string{"", "*", ".*"} }

var (
	listOfNames = regexp.MustCompile(`^[A-Za-z0-9_]+(\|[A-Za-z0-9_]+)*$`)
	ownProgram  = regexp.MustCompile("^(/[A-Za-z0-9_./+-]*/|PATH=\"\\$PATH:/([^\"\\\\$`]|\\\\[\"\\\\$`])*\" )?" + serverName + "$")
)

// differs says how a hook differs from ours for an event, or returns "" if it covers the event.
func (h Host) differs(ev event, group, entry *node) string {
	var list []string
	add := func(key string, value *node) {
		text, err := json.Marshal(value.plain())
		if err != nil {
			text = []byte(err.Error())
		}
		list = append(list, key+" "+string(text))
	}
	if m := group.find("matcher"); m != nil && !covers(m, ev.matcher) {
		add("matcher", m)
	}
	switch t := entry.find("type"); {
	case t == nil:
		list = append(list, "no type")
	case t.text() != "command":
		add("type", t)
	}
	if command := entry.find("command"); !h.runs(ev, command.text()) {
		add("command", command)
		if ev.before && !refuses(command.text()) {
			list = append(list, "if lockkeeper is missing or crashes, every write passes unchecked")
		}
	}
	if t := entry.find("timeout"); t != nil {
		limit, isNumber := t.plain().(float64)
		if least := float64(h.limit); !isNumber || limit < least || limit > longest*least {
			add("timeout", t)
		}
	}
	for _, m := range group.children() {
		if m.key != "matcher" && m.key != "hooks" {
			add(m.key, m.value)
		}
	}
	for _, m := range entry.children() {
		if !slices.Contains(append(forPeople(), "type", "command", "timeout"), m.key) {
			add(m.key, m.value)
		}
	}
	return strings.Join(list, ", ")
}

// refuses reports whether a command refuses the call if its program fails.
func refuses(command string) bool {
	command = strings.TrimSpace(command)
	return strings.HasSuffix(command, "|| exit 2") || strings.HasSuffix(command, "exit 2; }")
}

// covers reports whether a matcher makes a host run a hook for all tools that our matcher names.
func covers(matcher *node, ours string) bool {
	text, isText := matcher.plain().(string)
	if isText && (slices.Contains(anyTool(), text) || text == ours) {
		return true
	}
	if idle, is := excepted(ours); is {
		theirs, is := excepted(text)
		return is && !slices.ContainsFunc(theirs, func(name string) bool { return !slices.Contains(idle, name) })
	}
	if !isText || !listOfNames.MatchString(ours) || !listOfNames.MatchString(text) {
		return false
	}
	names := strings.Split(text, "|")
	return !slices.ContainsFunc(strings.Split(ours, "|"), func(name string) bool { return !slices.Contains(names, name) })
}

// runs reports whether a command does the same as ours at an event, wherever the program is
// installed.
func (h Host) runs(ev event, command string) bool {
	_, is := h.shellOf(ev, command)
	return is
}

// shellOf returns the words with which a command of ours starts the program.
func (h Host) shellOf(ev event, command string) (words string, is bool) {
	const program = "\x00"
	forms := []string{h.command(program, ev)}
	if ev.before {
		plain := program + " hook " + h.Hook
		forms = append(forms, plain+" || exit 2", h.prefers(plain)+" || exit 2") // the second form is of an earlier version
	}
	for _, form := range forms {
		front, end, _ := strings.Cut(form, program)
		middle, fits := strings.CutPrefix(command, front)
		if middle, also := strings.CutSuffix(middle, end); fits && also && ownProgram.MatchString(middle) {
			return middle, true
		}
	}
	return "", false
}

// asksVersion returns the hook's command changed to print the version of the program that it
// starts. It finds the program in the same way as the hook.
func (k Hook) asksVersion() string {
	return strings.NewReplacer(serverName+" hook "+k.host.Hook, serverName+" --version", serverName+"-hook "+k.host.Hook, serverName+"-hook --version").Replace(k.Command)
}
