package conduct

import (
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/project/config"
)

// A flow can have any number of check phases. Each has its own commands and its own limit, and a
// limit that an entry does not name is max_fix_attempts.
func TestThreeChecks(t *testing.T) {
	c := &config.Config{MaxFixAttempts: 4, MaxCIFixAttempts: 7}
	c.Run.CI = []string{"make lint"}
	check := func(name, commands, limit string) flow.Phase {
		return flow.Phase{Name: name, Step: flow.Checking, Unit: flow.BatchUnit, Commands: commands, FixLimit: limit}
	}
	options := func(checks ...flow.Phase) run.Options {
		return run.Options{Flow: flow.Flow{Phases: checks}, Limits: run.Limits{Fixes: c.MaxFixAttempts, FixesIn: map[string]int{}}, Checks: run.Checks{Commands: map[string][]string{}}}
	}
	p := options(check("test", "", "max_fix_attempts"), check("ci", "run.ci", "max_ci_fix_attempts"), check("lint", "run.ci", ""))
	if err := withChecks(c, &p); err != nil {
		t.Fatal(err)
	}
	for phase, want := range map[string]struct{ commands, fixes int }{"test": {0, 4}, "ci": {1, 7}, "lint": {1, 4}} {
		if fixes := p.Limits.FixesOf(phase); fixes != want.fixes || len(p.Checks.Commands[phase]) != want.commands {
			t.Errorf("%s: %d fixes and commands %q, want %+v", phase, fixes, p.Checks.Commands[phase], want)
		}
	}
	for name, wrong := range map[string]flow.Phase{
		"unknown limit": check("lint", "", "max_lint_fixes"), "limit without a number": check("lint", "", "run.ci"),
		"unknown commands": check("lint", "run.lint", ""), "commands without a list": check("lint", "max_fix_attempts", ""),
	} {
		p := options(wrong)
		if err := withChecks(c, &p); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}
