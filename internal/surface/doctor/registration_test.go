package doctor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session/hook"
	"lockkeeper/internal/surface/doctor"
	"lockkeeper/internal/surface/view"
)

// program runs the test binary as lockkeeper or lockkeeper-hook, if it was started under that name.
func program(args []string) (handled bool, code int) {
	proc := hook.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv}
	name := filepath.Base(args[0])
	switch {
	case name != "lockkeeper" && name != "lockkeeper-hook":
		return false, 0
	case slices.Equal(args[1:], []string{"--version"}):
		fmt.Println(name, project.Version())
		return true, 0
	case name == "lockkeeper-hook":
		return true, hook.Main(args[1], proc)
	}
	return true, hook.Main(args[2], proc)
}

// A workbench is a codebase with an enrolled agent, and with our programs in PATH.
type workbench struct {
	t        *testing.T
	settings project.Settings
	bin      string
	home     string
	path     string // suffix of PATH; -: PATH has only our programs
}

func enrolled(t *testing.T, agent string) *workbench {
	t.Helper()
	s := settings(t, nil)
	d := &workbench{t: t, bin: t.TempDir()}
	d.home, _ = s.Env("HOME")
	before := s.Env
	s.Env = func(name string) (string, bool) {
		if name == "PATH" {
			if d.path == "-" {
				return d.bin, true
			}
			return d.bin + ":/usr/bin:/bin" + d.path, true
		}
		return before(name)
	}
	d.settings = s
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lockkeeper", "lockkeeper-hook"} {
		if err := os.Symlink(self, filepath.Join(d.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := project.FindRoot(s)
	site := enrol.At(root, s.Env)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := site.Plan(host(t, agent), enrol.Program{Shell: "lockkeeper", Path: "lockkeeper"})
	if err != nil {
		t.Fatal(err)
	}
	plan.Edits = slices.DeleteFunc(plan.Edits, enrol.Edit.InHome) // these tests are about the project's settings
	if err := plan.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *workbench) write(name, text string, mode os.FileMode) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		d.t.Fatal(err)
	}
}

// edit changes the settings of Claude Code in the codebase.
func (d *workbench) edit(change func(all map[string]any)) {
	d.t.Helper()
	name := filepath.Join(d.settings.Dir, ".claude/settings.json")
	text, err := os.ReadFile(name)
	if err != nil {
		d.t.Fatal(err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(text, &all); err != nil {
		d.t.Fatal(err)
	}
	change(all)
	if text, err = json.Marshal(all); err != nil {
		d.t.Fatal(err)
	}
	d.write(name, string(text), 0o644)
}

// said returns the report, and its protections for the host.
func (d *workbench) said(host string) (list []view.Protection, r *doctor.Report) {
	d.t.Helper()
	r, err := doctor.Examine(d.t.Context(), d.settings)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, w := range r.Protections {
		if w.Writer == host && !w.Below {
			list = append(list, w)
		}
	}
	return list, r
}

// ways returns the protections for the host's tools and for the programs that its commands run.
func (d *workbench) ways(host string) (tools, commands view.Protection, r *doctor.Report) {
	d.t.Helper()
	list, r := d.said(host)
	if len(list) == 1 {
		list = append(list, view.Protection{Level: view.Advisory})
	}
	if len(list) != 2 {
		d.t.Fatalf("of %s is said: %+v", host, list)
	}
	return list[0], list[1], r
}

func group(all map[string]any, event string) map[string]any {
	return all["hooks"].(map[string]any)[event].([]any)[0].(map[string]any)
}

func entry(all map[string]any, event string) map[string]any {
	return group(all, event)["hooks"].([]any)[0].(map[string]any)
}

// A registration is enforced if it is the one that init writes, or does at least the same. For any other, the
// report names the difference and the fix.
//
// shows: GP-5
func TestRegistrationDecides(t *testing.T) {
	onGroup := func(key string, value any) func(*workbench) {
		return func(d *workbench) { d.edit(func(all map[string]any) { group(all, "PreToolUse")[key] = value }) }
	}
	onEntry := func(key string, value any) func(*workbench) {
		return func(d *workbench) { d.edit(func(all map[string]any) { entry(all, "PreToolUse")[key] = value }) }
	}
	setting := func(key string, value any) func(*workbench) {
		return func(d *workbench) { d.edit(func(all map[string]any) { all[key] = value }) }
	}
	local := func(text string) func(*workbench) {
		return func(d *workbench) { d.write(filepath.Join(d.settings.Dir, ".claude/settings.local.json"), text, 0o644) }
	}
	after := func(event string, change func(group, entry map[string]any)) func(*workbench) {
		return func(d *workbench) {
			d.edit(func(all map[string]any) { change(group(all, event), entry(all, event)) })
		}
	}
	const all, tools, nothing = 2, 1, 0 // number of enforced ways: tools and commands, tools only, none
	for name, test := range map[string]struct {
		harm  func(*workbench)
		holds int
		fact  string
	}{
		"as init writes it":      {func(*workbench) {}, all, ""},
		"all tools by a star":    {onGroup("matcher", "*"), all, ""},
		"all tools by a pattern": {onGroup("matcher", ".*"), all, ""},
		"all tools by none":      {onGroup("matcher", ""), all, ""},
		"more tools":             {onGroup("matcher", "^(?!(Glob|Grep)$)"), all, ""},
		"a longer time":          {onEntry("timeout", 60), all, ""},
		"a word for people":      {onEntry("statusMessage", "asks"), all, ""},
		"without the small one":  {onEntry("command", "lockkeeper hook claude-code || exit 2"), all, ""},

		"one tool":                   {onGroup("matcher", "Edit"), nothing, `matcher "Edit"`},
		"another tool":               {onGroup("matcher", "NotebookEdit"), nothing, `matcher "NotebookEdit"`},
		"another case":               {onGroup("matcher", "write|edit|bash"), nothing, "matcher"},
		"no commands":                {onGroup("matcher", "Edit|Write|MultiEdit|NotebookEdit"), nothing, "matcher"},
		"no pattern":                 {onGroup("matcher", "Edit|Write|(Bash"), nothing, "matcher"},
		"a pattern of its own":       {onGroup("matcher", "^(Edit|Write|MultiEdit|NotebookEdit|Bash) $"), nothing, "matcher"},
		"no text":                    {onGroup("matcher", 1), nothing, "matcher 1"},
		"a group of its own kind":    {onGroup("enabled", false), nothing, "enabled false"},
		"nobody waits":               {onEntry("async", true), nothing, "async true"},
		"no time":                    {onEntry("timeout", 0.001), nothing, "timeout 0.001"},
		"too little time":            {onEntry("timeout", 1), nothing, "timeout 1"},
		"more time than timers know": {onEntry("timeout", 1e10), nothing, "timeout 10000000000"},
		"time as a word":             {onEntry("timeout", "30"), nothing, `timeout "30"`},
		"another type":               {onEntry("type", "prompt"), nothing, `type "prompt"`},
		"on a condition":             {onEntry("if", "Bash(git *)"), nothing, `if "Bash(git *)"`},
		"once":                       {onEntry("once", true), nothing, "once true"},
		"another shell":              {onEntry("shell", "powershell"), nothing, "shell"},
		"a failure lets pass":        {onEntry("command", "lockkeeper hook claude-code"), nothing, "passes unchecked"},
		"a refusal is lost":          {onEntry("command", "lockkeeper hook claude-code || true"), nothing, "every write is allowed"},
		"checked here alone": {onEntry("command", `case "$CLAUDE_PROJECT_DIR" in "") lockkeeper hook claude-code || exit 2;; *) true; esac`),
			nothing, "differs from what init writes"},

		"managed hooks alone":       {setting("allowManagedHooksOnly", true), nothing, "allowManagedHooksOnly in .claude/settings.json"},
		"hooks off":                 {setting("disableAllHooks", true), nothing, "disableAllHooks in .claude/settings.json"},
		"hooks off, as a word":      {setting("disableAllHooks", "true"), nothing, "disableAllHooks in .claude/settings.json"},
		"another PATH":              {setting("env", map[string]any{"PATH": "/usr/bin:/bin"}), nothing, "env.PATH in .claude/settings.json"},
		"another HOME":              {setting("env", map[string]any{"HOME": "/nowhere"}), nothing, "env.HOME in .claude/settings.json"},
		"other locks":               {local(`{"env": {"LOCKKEEPER_STORE": "/tmp/x.db"}}`), nothing, "env.LOCKKEEPER_STORE in .claude/settings.local.json"},
		"another state":             {local(`{"env": {"XDG_STATE_HOME": "/tmp/x"}}`), nothing, "env.XDG_STATE_HOME in .claude/settings.local.json"},
		"a variable of the agent's": {local(`{"env": {"ANTHROPIC_MODEL": "x"}}`), all, ""},
		"off for the user": {func(d *workbench) {
			d.write(filepath.Join(d.home, ".claude/settings.json"), `{"env": {"PATH": "/x"}}`, 0o644)
		}, nothing, "env.PATH in ~/.claude/settings.json"},

		"nothing is compared":          {after("PostToolUse", func(g, _ map[string]any) { g["matcher"] = "Zzz" }), tools, `PostToolUse in .claude/settings.json differs from what init writes: matcher "Zzz"`},
		"nobody waits to compare":      {after("PostToolUse", func(_, e map[string]any) { e["async"] = true }), tools, "async true"},
		"no end of a turn":             {func(d *workbench) { d.edit(func(all map[string]any) { delete(all["hooks"].(map[string]any), "Stop") }) }, tools, "Stop is missing"},
		"an end of a turn on occasion": {after("Stop", func(g, _ map[string]any) { g["matcher"] = "x" }), tools, `Stop in .claude/settings.json differs from what init writes: matcher "x"`},
		"a session begins elsewhere":   {after("SessionStart", func(g, _ map[string]any) { g["matcher"] = "resume" }), tools, "SessionStart"},
		"a session ends by a prompt":   {after("SessionEnd", func(_, e map[string]any) { e["type"] = "prompt" }), nothing, "SessionEnd[0].hooks[0].prompt"},
		"only the small program": {func(d *workbench) {
			if err := os.Remove(filepath.Join(d.bin, "lockkeeper")); err != nil {
				d.t.Fatal(err)
			}
		}, tools, "the hook program of PostToolUse, PostToolUseFailure, SessionStart, UserPromptSubmit, SubagentStop, Stop, SessionEnd fails with exit status 127"},
		"a small program that checks nothing": {func(d *workbench) { d.write(filepath.Join(d.bin, "lockkeeper-hook"), "#!/bin/sh\nexit 0\n", 0o755) }, nothing, "every write is allowed"},
		"a right one beside a wrong one": {func(d *workbench) {
			d.write(filepath.Join(d.home, ".claude/settings.json"), `{"hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "lockkeeper hook claude-code"}]}]}}`, 0o644)
		}, all, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := enrolled(t, "claude")
			test.harm(d)
			own, others, r := d.ways("claude")
			if enforced := own.Level == view.Enforced; enforced != (test.holds >= tools) || own.Broken == enforced {
				t.Errorf("tools: %+v", own)
			}
			if detected := others.Level == view.Detected; detected != (test.holds == all) {
				t.Errorf("commands: %+v", others)
			}
			if !strings.Contains(own.Fact+others.Fact, test.fact) || (test.holds < all) != (own.Next+others.Next != "") {
				t.Errorf("it does not say %q:\n%+v\n%+v", test.fact, own, others)
			}
			if r.OK != (test.holds == all) {
				t.Errorf("in all: %v %s", r.OK, r.Summary)
			}
		})
	}
}

// The reported version of a program comes from the program that the hook would start.
func TestVersionsOfPrograms(t *testing.T) {
	told := func(r *doctor.Report) (list []string) {
		for _, c := range r.Checks {
			if c.Name == "versions" && !c.OK {
				list = append(list, c.Fact)
			}
		}
		return list
	}
	d := enrolled(t, "claude")
	if _, _, r := d.ways("claude"); told(r) != nil {
		t.Error(told(r))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lockkeeper", "lockkeeper-hook"} {
		real := filepath.Join(t.TempDir(), name)
		if err := os.Symlink(self, real); err != nil {
			t.Fatal(err)
		}
		d.write(filepath.Join(d.bin, name), "#!/bin/sh\n[ \"$1\" = --version ] && echo "+name+" v0.0.1 && exit\nexec "+real+" \"$@\"\n", 0o755)
	}
	tools, _, r := d.ways("claude")
	if got := strings.Join(told(r), "\n"); !strings.Contains(got, ": lockkeeper v0.0.1") || !strings.Contains(got, ": lockkeeper-hook v0.0.1") || tools.Level != view.Enforced {
		t.Errorf("%s\n%+v", got, tools)
	}
}

// Hooks of a plugin count if files show that the plugin is enabled, and where it is installed.
func TestPluginRegisters(t *testing.T) {
	const user = `{"enabledPlugins": {"lockkeeper@lockkeeper": true}}`
	for name, test := range map[string]struct {
		user, local string
		scope       string // the plugin's entry in the installed list; DIR stands for its directory
		level, fact string
	}{
		"for the user":        {user, "", `{"scope": "user", "installPath": "DIR"}`, view.Enforced, "plugin lockkeeper@lockkeeper"},
		"for this project":    {user, "", `{"scope": "project", "projectPath": "ROOT", "installPath": "DIR"}`, view.Enforced, "plugin lockkeeper@lockkeeper"},
		"for another project": {user, "", `{"scope": "project", "projectPath": "/elsewhere", "installPath": "DIR"}`, view.Advisory, "only for other projects"},
		"in two places":       {user, "", `{"scope": "user", "installPath": "DIR"}, {"scope": "project", "projectPath": "/elsewhere", "installPath": "/other"}`, view.Advisory, "is unknown"},
		"nowhere":             {user, "", ``, view.Advisory, "is unknown"},
		"gone":                {user, "", `{"scope": "user", "installPath": "/gone"}`, view.Advisory, "/gone/hooks/hooks.json is missing"},
		"off here":            {user, `{"enabledPlugins": {"lockkeeper@lockkeeper": false}}`, `{"scope": "user", "installPath": "DIR"}`, view.Advisory, "it is installed, and has no hooks here"},
		"with hooks off":      {user, `{"disableAllHooks": true}`, `{"scope": "user", "installPath": "DIR"}`, view.Advisory, "disableAllHooks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := enrolled(t, "claude")
			root, err := project.FindRoot(d.settings)
			site := enrol.At(root, d.settings.Env)
			if err != nil {
				t.Fatal(err)
			}
			undo, err := site.Undo(host(t, "claude"), true)
			if err == nil {
				err = undo.Apply(t.Context())
			}
			plugin, wrong := filepath.Abs("../../../plugins/lockkeeper")
			if err != nil || wrong != nil {
				t.Fatal(err, wrong)
			}
			d.write(filepath.Join(d.bin, "claude"), "#!/bin/sh\n", 0o755)
			d.write(filepath.Join(d.home, ".claude/settings.json"), test.user, 0o644)
			if test.local != "" {
				d.write(filepath.Join(d.settings.Dir, ".claude/settings.local.json"), test.local, 0o644)
			}
			entries := strings.NewReplacer("DIR", plugin, "ROOT", site.Root).Replace(test.scope)
			d.write(filepath.Join(d.home, ".claude/plugins/installed_plugins.json"), `{"version": 2, "plugins": {"lockkeeper@lockkeeper": [`+entries+`]}}`, 0o644)
			if tools, _, _ := d.ways("claude"); tools.Level != test.level || !strings.Contains(tools.Fact, test.fact) {
				t.Errorf("%+v", tools)
			}
		})
	}
}
