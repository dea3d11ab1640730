package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Claude calls Claude Code in print mode.
//
// Its flags were read from `claude --help` and tried with 2.1.197. Every value is joined to
// its flag, so that a value with a leading dash is not read as a flag. Without a prompt in the
// arguments, the prompt is standard input.
// DISABLE_AUTOUPDATER is documented at code.claude.com/docs/en/env-vars; without it a call
// may replace the program while other calls use it. The removed variables tell Claude Code
// that it runs inside another Claude Code, which some versions refuse.
type Claude struct {
	Argv []string // the program and its first arguments; empty: claude, in PATH
}

func (Claude) Name() string { return "claude" }

func (c Claude) command(r *Request, _ Files) (Command, string, error) {
	argv := append(commandLine(c.Argv, "claude"), "-p", "--output-format=stream-json", "--verbose")
	if r.Permission == PermitAll {
		argv = append(argv, "--dangerously-skip-permissions")
	}
	argv = given(argv, "--model", r.Model)
	argv = given(argv, "--resume", r.Resume)
	argv = given(argv, "--json-schema", string(r.Schema))
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

// A claudeStream reads --output-format=stream-json. The lines are as version 2.1.197 prints
// them; testdata/claude has examples.
//
// There may be several results: an agent that started a task in the background prints one
// when its turn ends, and continues when the task has ended. So a result is final only if
// nothing follows it and no task is running.
type claudeStream struct {
	turnState
	tasks   map[string]bool
	message string // the id of the message whose tokens were counted last
	word    string // the kind of the last error of the API
	wait    time.Duration
	limited *claudeLimit // the account has reached a limit
}

func (s *claudeStream) line(b []byte, tell func(Event)) bool {
	var l struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
		Session string `json:"session_id"`
		IsError bool   `json:"is_error"`
	}
	if json.Unmarshal(b, &l) != nil || l.Type == "" || l.Session == "" {
		return false
	}
	switch {
	case s.res.Session == "":
		// A session that cannot start prints an error at once. Any other line before a
		// session is not from Claude Code.
		if !(l.Type == "system" && l.Subtype == "init") && !(l.Type == "result" && l.IsError) {
			return false
		}
		s.res.Session = l.Session
	case l.Session != s.res.Session:
		return false
	}
	s.final = false
	switch l.Type {
	case "system":
		return s.system(l.Subtype, b, tell)
	case "assistant", "user":
		return s.speech(l.Type == "assistant", b, tell)
	case "rate_limit_event":
		return s.rate(b, tell)
	case "result":
		return s.ends(b)
	}
	return true
}

func (s *claudeStream) system(subtype string, b []byte, tell func(Event)) bool {
	var l struct {
		Model   string          `json:"model"`   // in lines of type init
		Attempt int             `json:"attempt"` // in lines of type api_retry
		Delay   float64         `json:"retry_delay_ms"`
		Error   json.RawMessage `json:"error"`
		Task    string          `json:"task_id"` // in lines of the types task_…
		Patch   struct {
			Status string `json:"status"`
		} `json:"patch"`
	}
	switch subtype {
	case "init", "api_retry", "task_started", "task_notification", "task_updated":
		if json.Unmarshal(b, &l) != nil {
			return false
		}
	}
	switch subtype {
	case "init":
		s.res.Model = l.Model
		tell(Event{Kind: EventStarted, Session: s.res.Session, Model: l.Model})
	case "api_retry":
		s.wait = time.Duration(l.Delay * float64(time.Millisecond))
		tell(Event{Kind: EventRetry, Text: word(l.Error), Attempt: l.Attempt, Wait: s.wait})
	case "task_started":
		s.tasks[l.Task] = true
	case "task_notification":
		delete(s.tasks, l.Task)
	case "task_updated":
		if l.Patch.Status != "" && l.Patch.Status != "running" && l.Patch.Status != "pending" {
			delete(s.tasks, l.Task)
		}
	}
	return true
}

type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func (s *claudeStream) speech(model bool, b []byte, tell func(Event)) bool {
	var l struct {
		Error   json.RawMessage `json:"error"` // one word for why the API failed
		Message struct {
			ID      string          `json:"id"`
			Content json.RawMessage `json:"content"`
			Usage   claudeUsage     `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal(b, &l) != nil {
		return false
	}
	if model {
		s.word = word(l.Error)
	}
	var blocks []claudeBlock
	if json.Unmarshal(l.Message.Content, &blocks) != nil {
		return true // the content is a plain string, which is a prompt
	}
	for _, b := range blocks {
		switch {
		case b.Type == "text" && model:
			tell(Event{Kind: EventText, Text: b.Text})
		case b.Type == "tool_use":
			tell(Event{Kind: EventToolUse, Tool: b.Name, ToolID: b.ID, Text: string(b.Input)})
		case b.Type == "tool_result":
			tell(Event{Kind: EventToolResult, ToolID: b.ToolUseID, Text: textOf(b.Content), Failed: b.IsError})
		}
	}
	// A message has one line per block, each with the same token count.
	if u := Usage(l.Message.Usage); model && l.Message.ID != s.message && u.Total() > 0 {
		s.message, s.res.Usage = l.Message.ID, s.res.Usage.Add(u)
		sum := s.res.Usage
		tell(Event{Kind: EventUsage, Usage: &sum})
	}
	return true
}

type claudeLimit struct {
	Status   string  `json:"status"`
	ResetsAt float64 `json:"resetsAt"`
}

func (s *claudeStream) rate(b []byte, tell func(Event)) bool {
	var l struct {
		Limit claudeLimit `json:"rate_limit_info"`
	}
	if json.Unmarshal(b, &l) != nil {
		return false
	}
	s.limited = nil
	if l.Limit.Status == "rejected" {
		s.limited = &l.Limit
		tell(Event{Kind: EventNotice, Text: "the account has reached a limit"})
	}
	return true
}

type claudeResult struct {
	Subtype    string                 `json:"subtype"`
	IsError    bool                   `json:"is_error"`
	Result     string                 `json:"result"`
	Structured json.RawMessage        `json:"structured_output"`
	Errors     []string               `json:"errors"`
	Stop       string                 `json:"stop_reason"`
	Status     int                    `json:"api_error_status"`
	Turns      int                    `json:"num_turns"`
	Duration   int64                  `json:"duration_ms"`
	Cost       *float64               `json:"total_cost_usd"`
	Usage      claudeUsage            `json:"usage"`
	Models     map[string]claudeModel `json:"modelUsage"`
	Denials    []struct {
		Tool  string          `json:"tool_name"`
		ID    string          `json:"tool_use_id"`
		Input json.RawMessage `json:"tool_input"`
	} `json:"permission_denials"`
}

type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

type claudeModel struct {
	Input      int64 `json:"inputTokens"`
	Output     int64 `json:"outputTokens"`
	CacheRead  int64 `json:"cacheReadInputTokens"`
	CacheWrite int64 `json:"cacheCreationInputTokens"`
}

// ends reads a result. Cost and tokens by model count from the start of the program, turns
// and time from the last result.
func (s *claudeStream) ends(b []byte) bool {
	var l claudeResult
	if json.Unmarshal(b, &l) != nil || l.Subtype == "" {
		return false
	}
	s.said, s.final, s.failed = true, true, nil
	if l.IsError || l.Subtype != "success" || l.Stop == "refusal" {
		s.failed = s.failure(&l)
	}
	s.res.Text = l.Result
	if len(l.Structured) > 0 && string(l.Structured) != "null" {
		s.res.Structured = l.Structured
	}
	s.res.Turns += l.Turns
	s.res.Duration += time.Duration(l.Duration) * time.Millisecond
	if l.Cost != nil {
		s.res.CostUSD, s.res.Priced = *l.Cost, true
	}
	var used Usage
	for _, m := range l.Models {
		used = used.Add(Usage(m))
	}
	if used.Total() == 0 {
		used = Usage(l.Usage)
	}
	if used.Total() > 0 {
		s.res.Usage = used
	}
	for _, d := range l.Denials {
		if !slices.ContainsFunc(s.res.Denials, func(old Denial) bool { return old.ID == d.ID }) {
			s.res.Denials = append(s.res.Denials, Denial{Tool: d.Tool, ID: d.ID, Input: string(d.Input)})
		}
	}
	return true
}

func (s *claudeStream) finished(rest []byte, exit *Exit) bool {
	t := s.turnState
	t.final = t.final && len(s.tasks) == 0
	return t.finished(rest, exit)
}

func (s *claudeStream) result([]byte) (Result, *Error) { return s.res, s.failed }

// claudeWords classifies the errors of the API by the word that Claude Code prints.
var claudeWords = map[string]Kind{
	"authentication_failed": Refused,
	"oauth_org_not_allowed": Refused,
	"model_not_found":       Refused,
	"billing_error":         Limit,
	"rate_limit":            Transient,
	"overloaded":            Transient,
	"server_error":          Transient,
	"invalid_request":       Unfinished,
	"max_output_tokens":     Unfinished,
}

func (s *claudeStream) failure(l *claudeResult) *Error {
	e := &Error{Kind: claudeWords[s.word], Status: l.Status, Reason: cmp.Or(l.Result, strings.Join(l.Errors, "; "))}
	switch l.Subtype {
	case "error_max_turns":
		e.Kind, e.Next = Unfinished, "permit more turns, and resume its session "+s.res.Session
	case "error_max_budget_usd":
		e.Kind, e.Next = Unfinished, "raise its budget, and resume its session "+s.res.Session
	case "error_max_structured_output_retries":
		e.Kind = Malformed
	}
	switch {
	case l.Stop == "refusal":
		e.Kind, e.Next = Unfinished, "rephrase the task"
	case s.word == "rate_limit" && s.limited != nil:
		e.Kind, e.ResetAt = Limit, unixTime(s.limited.ResetsAt)
	case s.word == "rate_limit":
		e.RetryAfter = s.wait
	}
	return e
}

func (s *claudeStream) ended(exit Exit, said string) *Error { return byWords(exit, said) }

// word returns a JSON string, or "" for any other value, which newer versions may print.
func word(raw json.RawMessage) (w string) {
	if json.Unmarshal(raw, &w) != nil {
		return ""
	}
	return w
}

// textOf returns the text of a tool's answer: a string, or the text blocks of a list.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var blocks []claudeBlock
	if json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	var all []string
	for _, b := range blocks {
		if b.Text != "" {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, "\n")
}
