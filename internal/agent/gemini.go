package agent

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"lockkeeper"
)

// Gemini calls the Gemini CLI without a terminal.
//
// The protocol was read from google-gemini/gemini-cli at 5411f11 (packages/core/src/output/types.ts,
// packages/cli/src/config/config.ts, packages/core/src/utils/errors.ts) and
// geminicli.com/docs/cli/headless, and tried with 0.61.0. Without a prompt in the arguments, the
// prompt is standard input. The prompt must start within half a second and is read up to 8 MiB. The
// program refuses an untrusted directory, unless a variable is set. It supports no schema
// and reports no price.
type Gemini struct {
	Argv []string // the program and its first arguments; empty: gemini, in PATH
}

func (Gemini) Name() string { return "gemini" }

// maxGeminiPrompt is the number of bytes that the Gemini CLI reads from standard input.
const maxGeminiPrompt = 8 << 20

func (g Gemini) command(r *Request, _ Files) (Command, string, error) {
	if err := r.cannot(g.Name(), "cost limit"); err != nil {
		return Command{}, "", err
	}
	argv := append(commandLine(g.Argv, "gemini"), "--output-format=stream-json")
	if r.Permission == PermitAll {
		argv = append(argv, "--approval-mode=yolo")
	}
	argv = given(argv, "--model", r.Model)
	argv = given(argv, "--resume", r.Resume)
	prompt := r.asked()
	if len(prompt) > maxGeminiPrompt {
		return Command{}, "", &lockkeeper.InputError{Field: "prompt", Value: strings.ToValidUTF8(prompt[:60], ""), Reason: "longer than the 8 MiB that gemini reads", Next: "shorten it"}
	}
	env := environment(r.Env, map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"})
	return Command{Argv: append(argv, r.Extra...), Dir: r.Dir, Env: env}, prompt, nil
}

func (Gemini) stream() stream { return &geminiStream{} }

type geminiStream struct {
	turnState
	answer strings.Builder   // the text since the last tool
	tools  map[string]string // the names of used tools, by id
}

func (s *geminiStream) line(b []byte, tell func(Event)) bool {
	var l struct {
		Type       string          `json:"type"`
		Session    string          `json:"session_id"`
		Model      string          `json:"model"`
		Role       string          `json:"role"`
		Content    string          `json:"content"`
		Tool       string          `json:"tool_name"`
		ToolID     string          `json:"tool_id"`
		Parameters json.RawMessage `json:"parameters"`
		Status     string          `json:"status"`
		Output     string          `json:"output"`
		Severity   string          `json:"severity"`
		Message    string          `json:"message"`
		Error      struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
		Stats geminiStats `json:"stats"`
	}
	if json.Unmarshal(b, &l) != nil || l.Type == "" {
		return false
	}
	// Before a session, the program prints only a result that is an error.
	if s.res.Session == "" && l.Type != "init" && !(l.Type == "result" && l.Status == "error") {
		return false
	}
	s.final = false
	switch l.Type {
	case "init":
		if s.res.Session != "" || l.Session == "" {
			return false
		}
		s.res.Session, s.res.Model, s.tools = l.Session, l.Model, map[string]string{}
		tell(Event{Kind: EventStarted, Session: l.Session, Model: l.Model})
	case "message":
		if l.Role == "assistant" {
			s.speak(l.Content)
			tell(Event{Kind: EventText, Text: l.Content})
		}
	case "tool_use":
		s.answer.Reset()
		s.tools[l.ToolID] = l.Tool
		tell(Event{Kind: EventToolUse, Tool: l.Tool, ToolID: l.ToolID, Text: string(l.Parameters)})
	case "tool_result":
		// Without a terminal, tools that need a confirmation are not registered.
		if l.Error.Type == "policy_violation" || l.Error.Type == "tool_not_registered" {
			s.res.Denials = append(s.res.Denials, Denial{Tool: s.tools[l.ToolID], ID: l.ToolID})
		}
		tell(Event{Kind: EventToolResult, Tool: s.tools[l.ToolID], ToolID: l.ToolID, Text: cmp.Or(l.Output, l.Error.Message), Failed: l.Status == "error"})
	case "error":
		s.trouble(l.Severity, l.Message)
		tell(Event{Kind: EventNotice, Text: l.Message})
	case "result":
		s.ends(l.Status, l.Error.Type, l.Error.Message, &l.Stats)
		used := s.res.Usage
		tell(Event{Kind: EventUsage, Usage: &used})
	}
	return true
}

func (s *geminiStream) speak(text string) {
	if s.answer.Len()+len(text) > maxLine {
		s.failed = &Error{Kind: Unfinished, Reason: "its answer is longer than 16 MiB"}
		return
	}
	s.answer.WriteString(text)
}

// trouble records an error. A program that stops at its own limit prints an error, and then
// a successful result.
func (s *geminiStream) trouble(severity, message string) {
	if severity == "error" || strings.Contains(message, "stopping execution") {
		s.failed = &Error{Kind: Unfinished, Reason: message}
	}
}

type geminiStats struct {
	Input    int64 `json:"input"` // input tokens, without cached ones
	Cached   int64 `json:"cached"`
	Output   int64 `json:"output_tokens"`
	Duration int64 `json:"duration_ms"`
}

// geminiErrors classifies the errors that end a call by their type.
var geminiErrors = map[string]Kind{
	"FatalAuthenticationError":     Refused,
	"UnauthorizedError":            Refused,
	"ForbiddenError":               Refused,
	"AccountSuspendedError":        Refused,
	"ValidationRequiredError":      Refused,
	"ModelNotFoundError":           Refused,
	"FatalInputError":              Refused,
	"FatalConfigError":             Refused,
	"FatalUntrustedWorkspaceError": Refused,
	"TerminalQuotaError":           Limit,
	"RetryableQuotaError":          Transient,
	"FatalTurnLimitedError":        Unfinished,
	"FatalCancellationError":       Unfinished,
}

func (s *geminiStream) ends(status, kind, message string, stats *geminiStats) {
	s.said, s.final = true, true
	s.res.Text = s.answer.String()
	s.res.Turns++
	s.res.Duration = time.Duration(stats.Duration) * time.Millisecond
	s.res.Usage = Usage{Input: stats.Input, CacheRead: stats.Cached, Output: stats.Output}
	if status != "success" && message != "" {
		s.failed = &Error{Kind: geminiErrors[kind], Reason: message}
	} else if status != "success" && s.failed == nil {
		s.failed = &Error{Kind: Unfinished}
	}
}

// geminiExits classifies the exit codes of a program that ended without a result.
var geminiExits = map[int]Kind{41: Refused, 42: Refused, 44: Refused, 52: Refused, 53: Unfinished, 55: Refused}

func (s *geminiStream) ended(exit Exit, said string) *Error {
	if kind := geminiExits[exit.Code]; kind != "" && exit.byItself() {
		return &Error{Kind: kind, Reason: said}
	}
	return byWords(exit, said)
}
