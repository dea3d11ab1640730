package enrol

import (
	"os/exec"
	"strings"
	"testing"
)

// Files that a host was observed to accept with our hooks raise no doubt. Files that it rejects,
// or that were never observed, do.
func TestDoubt(t *testing.T) {
	begin := func(text string) func(string) string {
		return func(s string) string { return strings.Replace(s, "{", "{"+text, 1) }
	}
	hook := func(text string) func(string) string {
		return func(s string) string { return strings.Replace(s, `"hooks": {`, `"hooks": {`+text+",", 1) }
	}
	mark := func(s string) string { return "\ufeff" + s }
	const foreign = `"X": [{"matcher": "x", "hooks": [{"type": "command", "command": "true", "timeout": 5}]}]`
	for name, test := range map[string]struct {
		host   Host
		change func(string) string
		says   string
	}{
		"codex, another's":          {codex(), hook(foreign), ""},
		"codex, a word for people":  {codex(), begin(`"description": "x",`), ""},
		"codex, a comment":          {codex(), begin("// x\n"), "codex does not run hooks from this file: F:1:2: it is not strict JSON"},
		"codex, a mark":             {codex(), mark, "codex does not run hooks from this file: F:1:1: it begins with a byte order mark"},
		"codex, another key":        {codex(), begin(`"env": {},`), "unknown: F:1:9: env"},
		"codex, twice":              {codex(), hook(`"Stop": []`), "hooks.Stop"},
		"codex, half a second":      {codex(), hook(strings.Replace(foreign, "5", "0.5", 1)), "hooks.X[0].hooks[0].timeout"},
		"codex, another type":       {codex(), hook(strings.Replace(foreign, `"command"`, `"banana"`, 1)), "hooks.X[0].hooks[0].type"},
		"gemini, another's":         {gemini(), hook(foreign), ""},
		"gemini, a comment":         {gemini(), begin("// x\n"), ""},
		"gemini, wrong settings":    {gemini(), begin(`"general": 3,`), ""},
		"gemini, settings of hooks": {gemini(), hook(`"enabled": true, "disabled": []`), ""},
		"gemini, a mark":            {gemini(), mark, "gemini does not run hooks from this file: F:1:1"},
		"gemini, no text":           {gemini(), hook(strings.Replace(foreign, `"x"`, "3", 1)), "whether gemini runs hooks from this file is unknown: F:2:31: hooks.X[0].matcher"},
		"claude, a mark":            {claude(), mark, ""},
		"claude, a mark and a comment": {claude(), func(s string) string { return mark(begin("// x\n")(s)) },
			"claude does not run hooks from this file: F:1:"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := hooks{}.into("{}\n", order{host: test.host, program: Program{Shell: serverName, Path: serverName}})
			if err != nil {
				t.Fatal(err)
			}
			if got := test.host.doubt("F", test.change(text)); (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
				t.Errorf("it says %q, want %q", got, test.says)
			}
		})
	}
}

// Without the program, the hook before a write refuses and says which program is missing. A program
// that refuses or fails adds nothing to its own text.
func TestMissingProgram(t *testing.T) {
	bin := t.TempDir()
	for _, h := range Hosts() {
		for _, ev := range h.turns {
			if !ev.before {
				continue
			}
			for _, shell := range []string{"/bin/sh", "/bin/bash"} {
				cmd := exec.CommandContext(t.Context(), shell, "-c", h.command(serverName, ev))
				cmd.Env = []string{"PATH=" + bin}
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), missing) {
					t.Errorf("%s: %v %s", h.Name, err, out)
				}
				cmd = exec.CommandContext(t.Context(), shell, "-c", h.command("fails() { return 1; }; fails", ev))
				cmd.Env = []string{"PATH=" + bin}
				out, err = cmd.CombinedOutput()
				if cmd.ProcessState.ExitCode() != 2 || len(out) > 0 {
					t.Errorf("%s: %v %s", h.Name, err, out)
				}
			}
		}
	}
}
