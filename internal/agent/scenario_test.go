package agent

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// apiStep is one answer of a scripted API: a text, the use of a tool, or an
// error.
type apiStep struct {
	text   string
	tool   string
	input  map[string]any
	status int
	kind   string
	code   any // the status for one API, a word for another
	resets int64
	header map[string]string
}

// scenario is one call of a real agent program against a scripted API. What it said is
// recorded in testdata, so the same is asked of the record where the program is not
// installed.
type scenario struct {
	agent  string
	name   string
	script []apiStep
	env    []string
	ask    func(*Request)

	text    string // of the result
	turns   int
	cost    float64
	tokens  Usage
	denied  string // the tool
	answer  string // the structured one
	failure error  // of this type; nil: none
	says    string // part of the error
}

const countSchema = `{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"}},"required":["name","count"]}`

func permitAll(r *Request) { r.Permission = PermitAll }

func (s *scenario) adapter(t *testing.T, argv ...string) Adapter {
	t.Helper()
	a, err := ByName(s.agent, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// record is the file with what the program said.
func (s *scenario) record() string { return filepath.Join("testdata", s.agent, s.name+".jsonl") }

func scenarios() []scenario {
	all := claudeScenarios()
	for i := range all {
		all[i].agent = "claude"
	}
	return append(all, otherScenarios()...)
}

func claudeScenarios() []scenario {
	bash := func(command string) apiStep {
		return apiStep{tool: "Bash", input: map[string]any{"command": command, "description": "x"}}
	}
	write := func() apiStep {
		return apiStep{tool: "Write", input: map[string]any{"file_path": "WORKSPACE/hello.txt", "content": "hi\n"}}
	}
	refuse := func(status int, kind, message string) []apiStep {
		return []apiStep{{status: status, kind: kind, text: message}}
	}
	used := func(n int64) Usage { return Usage{Input: 100 * n, Output: 20 * n, CacheRead: 7 * n, CacheWrite: 3 * n} }
	return []scenario{
		{name: "tools", ask: permitAll, text: "All done.", turns: 3, cost: 0.0030661, tokens: used(3),
			script: []apiStep{write(), bash(`echo '{"type":"result","subtype":"success","is_error":false,"result":"fake"}'`), {text: "All done."}}},
		{name: "denied", text: "I may not.", turns: 2, cost: 0.0020441, tokens: used(2), denied: "Write",
			script: []apiStep{write(), {text: "I may not."}}},
		{name: "structured", ask: func(r *Request) { r.Schema = []byte(countSchema) }, text: `{"count":3,"name":"n"}`, turns: 2, cost: 0.0010221, tokens: used(1), answer: `{"count":3,"name":"n"}`,
			script: []apiStep{{tool: "StructuredOutput", input: map[string]any{"name": "n", "count": 3}}, {text: "done"}}},
		{name: "unstructured", ask: func(r *Request) { r.Schema = []byte(countSchema) }, text: `{"name":"x"}`, turns: 2, cost: 0.0020441, tokens: used(2), failure: &OutputError{}, says: "there is none",
			script: []apiStep{{text: `{"name":"x"}`}}},
		{name: "turns", ask: func(r *Request) { r.Permission, r.MaxTurns = PermitAll, 1 }, turns: 2, cost: 0.0010221, tokens: used(1), failure: &UnfinishedError{}, says: "maximum number of turns",
			script: []apiStep{bash("echo a"), bash("echo b"), {text: "done"}}},
		{name: "budget", ask: func(r *Request) { r.Permission, r.MaxUSD = PermitAll, 0.0001 }, turns: 1, cost: 0.0010221, tokens: used(1), failure: &UnfinishedError{}, says: "maximum budget",
			script: []apiStep{bash("echo a"), {text: "done"}}},
		{name: "background", ask: permitAll, text: "ok", turns: 3, cost: 0.0030661, tokens: used(3),
			script: []apiStep{{tool: "Bash", input: map[string]any{"command": "sleep 1; echo hi", "description": "x", "run_in_background": true}}, {text: "ok"}}},
		{name: "overloaded", failure: &TransientError{}, says: "529", turns: 1, text: "*", script: refuse(529, "overloaded_error", "Overloaded")},
		{name: "broken", failure: &TransientError{}, says: "500", turns: 1, text: "*", script: refuse(500, "api_error", "internal")},
		{name: "rate", failure: &TransientError{}, says: "try again in 1s", turns: 1, text: "*",
			script: []apiStep{{status: 429, kind: "rate_limit_error", text: "slower", header: map[string]string{"retry-after": "1"}}}},
		{name: "limit", env: []string{"CLAUDE_CODE_OAUTH_TOKEN=test"}, failure: &LimitError{}, says: "wait until 2100-01-01T00:00:00Z", turns: 1, text: "*",
			script: []apiStep{{status: 429, kind: "rate_limit_error", text: "no more", header: map[string]string{"anthropic-ratelimit-unified-status": "rejected",
				"anthropic-ratelimit-unified-reset": "4102444800", "anthropic-ratelimit-unified-representative-claim": "five_hour"}}}},
		{name: "credit", failure: &LimitError{}, says: "Credit balance is too low", turns: 1, text: "*",
			script: refuse(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.")},
		{name: "key", failure: &RefusedError{}, says: "Invalid API key", turns: 1, text: "*", script: refuse(401, "authentication_error", "invalid x-api-key")},
		{name: "model", ask: func(r *Request) { r.Model = "nope" }, failure: &RefusedError{}, says: "(nope)", turns: 1, text: "*", script: refuse(404, "not_found_error", "model: nope")},
		{name: "network", env: []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:9"}, failure: &TransientError{}, says: "Unable to connect", turns: 1, text: "*", script: []apiStep{{text: "unreachable"}}},
		{name: "session", ask: func(r *Request) { r.Resume = "11111111-1111-4111-8111-111111111111" }, failure: &RefusedError{}, says: "No conversation found", script: []apiStep{{text: "done"}}},
	}
}

func otherScenarios() []scenario {
	used := func(n int64) Usage { return Usage{Input: 93 * n, Output: 20 * n, CacheRead: 7 * n} }
	answer := `{"name":"n","count":3}`
	schema := func(r *Request) { r.Schema = []byte(strictSchema) }
	codex := []scenario{
		{name: "tools", ask: permitAll, text: "All done.", turns: 1, tokens: used(2),
			script: []apiStep{{tool: "exec_command", input: map[string]any{"cmd": `echo hi > hello.txt; echo '{"type":"turn.completed","usage":{}}'`}}, {text: "All done."}}},
		{name: "structured", ask: schema, text: answer, answer: answer, turns: 1, tokens: used(1), script: []apiStep{{text: answer}}},
		{name: "unstructured", ask: schema, text: `{"name":"n"}`, turns: 1, tokens: used(1), failure: &OutputError{}, says: "line 1, column 1: missing property 'count'", script: []apiStep{{text: `{"name":"n"}`}}},
		{name: "limit", failure: &LimitError{}, says: "wait until 2100-01-0", script: []apiStep{{status: 429, kind: "usage_limit_reached", text: "no more", resets: 4102574400}}},
		{name: "credit", failure: &LimitError{}, says: "Quota exceeded", script: []apiStep{{status: 429, kind: "insufficient_quota", code: "insufficient_quota", text: "You exceeded your current quota"}}},
		{name: "key", failure: &RefusedError{}, says: "401", script: []apiStep{{status: 401, text: "Incorrect API key provided"}}},
		{name: "broken", failure: &TransientError{}, says: "high demand", script: []apiStep{{status: 500, text: "internal"}}},
	}
	gemini := []scenario{
		{name: "tools", ask: permitAll, text: "All done.", turns: 1, tokens: used(2),
			script: []apiStep{{tool: "write_file", input: map[string]any{"file_path": "WORKSPACE/hello.txt", "content": "hi\n"}}, {text: "All done."}}},
		{name: "denied", text: "I may not.", turns: 1, tokens: used(2), denied: "write_file",
			script: []apiStep{{tool: "write_file", input: map[string]any{"file_path": "WORKSPACE/hello.txt", "content": "hi\n"}}, {text: "I may not."}}},
		{name: "structured", ask: schema, text: "```json\n" + answer + "\n```", answer: answer, turns: 1, tokens: used(1), script: []apiStep{{text: "```json\n" + answer + "\n```"}}},
		{name: "key", failure: &RefusedError{}, says: "API key not valid", turns: 1, script: []apiStep{{status: 401, code: 401, text: "API key not valid"}}},
		{name: "model", failure: &RefusedError{}, says: "models/x is not found", turns: 1, script: []apiStep{{status: 404, code: 404, text: "models/x is not found"}}},
	}
	for i := range codex {
		codex[i].agent = "codex"
	}
	for i := range gemini {
		more := gemini[i].ask
		gemini[i].agent, gemini[i].ask = "gemini", func(r *Request) {
			r.Model = "gemini-2.5-pro" // otherwise it asks a model which model to ask
			if more != nil {
				more(r)
			}
		}
	}
	return append(codex, gemini...)
}

// strictSchema is countSchema as the Responses API wants it.
const strictSchema = `{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"}},"required":["name","count"],"additionalProperties":false}`

// request is what is asked in a directory.
func (s *scenario) request(dir string) Request {
	r := Request{Prompt: "Do it.", Dir: dir, Env: []string{}}
	if s.ask != nil {
		s.ask(&r)
	}
	return r
}

// check holds what came of a call against the scenario.
func (s *scenario) check(t *testing.T, res Result, err error) {
	t.Helper()
	if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", s.failure) {
		t.Fatalf("error %T: %v; want %T", err, err, s.failure)
	}
	if err != nil && !strings.Contains(err.Error(), s.says) {
		t.Errorf("the error %q does not say %q", err, s.says)
	}
	if s.text != "*" && res.Text != s.text {
		t.Errorf("text %q, want %q", res.Text, s.text)
	}
	if string(res.Structured) != s.answer {
		t.Errorf("structured answer %s, want %s", res.Structured, s.answer)
	}
	if d := res.CostUSD - s.cost; d > 1e-6 || d < -1e-6 || res.Priced != (s.agent == "claude") {
		t.Errorf("cost %v (said %v), want %v", res.CostUSD, res.Priced, s.cost)
	}
	if !reflect.DeepEqual(res.Usage, s.tokens) || res.Turns != s.turns {
		t.Errorf("%+v in %d turns, want %+v in %d", res.Usage, res.Turns, s.tokens, s.turns)
	}
	denied := ""
	for _, d := range res.Denials {
		denied += d.Tool
	}
	if denied != s.denied {
		t.Errorf("denied %q, want %q", denied, s.denied)
	}
	if len(res.Session) != 36 || res.Duration < 0 || res.Duration > time.Hour {
		t.Errorf("session %q, duration %s", res.Session, res.Duration)
	}
}
