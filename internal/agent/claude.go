package agent

import (
	"fmt"
	"strconv"
)

// Claude calls Claude Code in print mode.
//
// Its flags were read from `claude --help` and tried with 2.1.197. Every value is joined to
// its flag, so that a value with a leading dash is not read as a flag. --allowedTools may be
// repeated. Without a prompt in the arguments, the prompt is standard input.
// DISABLE_AUTOUPDATER is documented at code.claude.com/docs/en/env-vars; without it a call
// may replace the program while other calls use it. The removed variables tell Claude Code
// that it runs inside another Claude Code, which some versions refuse.
type Claude struct {
	Argv []string // the program and its first arguments; empty: claude, in PATH
}

// Name implements Adapter.
func (Claude) Name() string { return "claude" }

func (c Claude) command(r *Request, _ Files) (Command, string, error) {
	argv := append(commandLine(c.Argv, "claude"), "-p", "--output-format=stream-json", "--verbose")
	switch r.Permission {
	case PermitAll:
		argv = append(argv, "--dangerously-skip-permissions")
	case PermitEdits:
		argv = append(argv, "--permission-mode=acceptEdits")
	default:
		argv = append(argv, "--permission-mode=default")
	}
	for _, tool := range r.AllowedTools {
		argv = append(argv, "--allowedTools="+tool)
	}
	argv = given(argv, "--model", r.Model)
	argv = given(argv, "--resume", r.Resume)
	argv = given(argv, "--json-schema", string(r.Schema))
	if r.MaxTurns > 0 {
		argv = append(argv, fmt.Sprintf("--max-turns=%d", r.MaxTurns))
	}
	if r.MaxUSD > 0 {
		argv = append(argv, "--max-budget-usd="+strconv.FormatFloat(r.MaxUSD, 'f', -1, 64))
	}
	env := environment(r.Env, map[string]string{"DISABLE_AUTOUPDATER": "1"}, "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
	return Command{Argv: append(argv, r.Extra...), Dir: r.Dir, Env: env}, r.Prompt, nil
}

func (Claude) stream() stream { return &claudeStream{tasks: map[string]bool{}} }

// given adds a flag if it has a value.
func given(argv []string, flag, value string) []string {
	if value == "" {
		return argv
	}
	return append(argv, flag+"="+value)
}

// commandLine returns the configured program and its first arguments, or the usual program.
func commandLine(argv []string, usual string) []string {
	if len(argv) == 0 {
		return []string{usual}
	}
	return argv[:len(argv):len(argv)]
}
