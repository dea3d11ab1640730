package enrol

import (
	_ "embed" // embeds the script
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
)

// script is a whole file of ours: a plugin that calls our hook, for a host that has no hooks.
type script struct{}

//go:embed opencode.js
var scriptText string

// scriptMark begins our file in all versions.
const scriptMark = "// Lockkeeper: "

// The lines of the script that have our commands begin with these texts.
const (
	scriptBefore    = "const before = "
	scriptOtherwise = "const otherwise = "
)

// isScript reports whether the file is a script of ours.
func (f file) isScript() bool { return slices.Contains(f.parts, part(script{})) }

func (script) into(text string, o order) (string, error) {
	if text != "" && !strings.HasPrefix(text, scriptMark) {
		return "", &lockkeeper.RefusedError{Act: "init", Reason: "the file is not one that init wrote", Next: "move it away"}
	}
	return o.script()
}

func (script) outOf(text string, _ order) (string, error) {
	if strings.HasPrefix(text, scriptMark) {
		text = ""
	}
	return text, nil
}

// script returns the script with the commands of the host.
func (o order) script() (string, error) {
	values := map[string]any{"BEFORE": o.host.command(o.program.Shell, o.host.turns[0]), "OTHERWISE": o.host.command(o.program.Shell, o.host.turns[1]),
		"IDLE": program.Idle(o.host.Program), "LIMIT": o.host.limit}
	var pairs []string
	for name, value := range values {
		text, err := encode(value, "", "")
		if err != nil {
			return "", err
		}
		pairs = append(pairs, name, text)
	}
	return strings.NewReplacer(pairs...).Replace(scriptText), nil
}

// hooksIn lists our hooks in a file. A script has all of them, or none.
func (h Host) hooksIn(text string) (list []Hook, err error) {
	if !h.scripted {
		return hooksIn(text, h)
	}
	if !strings.HasPrefix(text, scriptMark) {
		return nil, nil
	}
	before, otherwise := commandIn(text, scriptBefore), commandIn(text, scriptOtherwise)
	for _, ev := range h.turns {
		k := Hook{Event: ev.name, Command: otherwise, host: h}
		if ev.before {
			k.Command = before
		}
		shell, is := h.shellOf(ev, k.Command)
		switch ours, err := (order{h, Program{Shell: shell}}).script(); {
		case err != nil:
			return nil, err
		case !is:
			k.Differs = fmt.Sprintf("command %q", k.Command)
		case ours != text:
			k.Differs = "it is not the script that this version writes"
		}
		list = append(list, k)
	}
	return list, nil
}

// commandIn returns the text that a line of a script has after its beginning.
func commandIn(text, begins string) (command string) {
	for line := range strings.Lines(text) {
		if value, is := strings.CutPrefix(line, begins); is {
			if json.Unmarshal([]byte(value), &command) != nil {
				return ""
			}
		}
	}
	return command
}

// scriptsOfOthers lists the plugins of others that a host loads. Each may change the input of a call
// after our check.
func (s Site) scriptsOfOthers(h Host) (list []Hook, err error) {
	if !h.scripted {
		return nil, nil
	}
	for _, dir := range []string{".opencode/plugins", ".opencode/plugin", "~/.config/opencode/plugins", "~/.config/opencode/plugin"} {
		for _, ending := range []string{".js", ".ts"} {
			found, err := s.named(dir + "/*" + ending)
			if err != nil {
				return nil, err
			}
			for _, file := range found {
				if filepath.Base(file) != filepath.Base(h.files[0].path) {
					list = append(list, Hook{Event: "tool.execute.before", Command: file, File: file, host: h})
				}
			}
		}
	}
	return list, nil
}
