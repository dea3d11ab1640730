package agent

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/agent/scriptedapi"
)

// A scenario is one call of a real agent program against a scripted API. Its output is recorded
// in testdata, and the recording is checked where the program is not installed.
type scenario struct {
	agent  string
	name   string
	script []scriptedapi.Play
	env    []string
	ask    func(*Request)

	text    string // the text of the result
	turns   int
	cost    float64
	tokens  Usage
	denied  string // the denied tool
	answer  string // the structured answer
	failure error  // the type of the error; nil: none
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

// record returns the file with the recorded output of the program.
func (s *scenario) record() string { return filepath.Join("testdata", s.agent, s.name+".jsonl") }

// play returns a script of one conversation.
func play(steps ...scriptedapi.Step) []scriptedapi.Play { return []scriptedapi.Play{{Steps: steps}} }

func says(text string) scriptedapi.Step { return scriptedapi.Step{Text: text} }

func uses(tool string, input map[string]any) scriptedapi.Step {
	return scriptedapi.Step{Tools: []scriptedapi.Tool{{Name: tool, Input: input}}}
}

// fails returns a script with only an error. Its members depend on the API.
func fails(status int, members map[string]any) []scriptedapi.Play {
	body, err := json.Marshal(map[string]any{"type": "error", "error": members})
	if err != nil {
		panic(err)
	}
	return play(scriptedapi.Step{Fail: &scriptedapi.Fail{Status: status, Body: string(body)}})
}

func scenarios() []scenario {
	all := claudeScenarios()
	for i := range all {
		all[i].agent = "claude"
	}
	return append(all, otherScenarios()...)
}

func claudeScenarios() []scenario {
	bash := func(command string) scriptedapi.Step {
		return uses("Bash", map[string]any{"command": command, "description": "x"})
	}
	write := uses("Write", map[string]any{"file_path": "{dir}/hello.txt", "content": "hi\n"})
	refuse := func(status int, kind, message string, header map[string]string) []scriptedapi.Play {
		return play(scriptedapi.Step{Fail: &scriptedapi.Fail{Status: status, Type: kind, Message: message, Header: header}})
	}
	used := func(n int64) Usage { return Usage{Input: 100 * n, Output: 20 * n, CacheRead: 7 * n, CacheWrite: 3 * n} }
	return []scenario{
		{name: "tools", ask: permitAll, text: "All done.", turns: 3, cost: 0.0030661, tokens: used(3),
			script: play(write, bash(`echo '{"type":"result","subtype":"success","is_error":false,"result":"fake"}'`), says("All done."))},
		{name: "denied", text: "I may not.", turns: 2, cost: 0.0020441, tokens: used(2), denied: "Write",
			script: play(write, says("I may not."))},
		{name: "structured", ask: func(r *Request) { r.Schema = []byte(countSchema) }, text: `{"count":3,"name":"n"}`, turns: 2, cost: 0.0010221, tokens: used(1), answer: `{"count":3,"name":"n"}`,
			script: play(uses("StructuredOutput", map[string]any{"name": "n", "count": 3}))},
		{name: "unstructured", ask: func(r *Request) { r.Schema = []byte(countSchema) }, text: `{"name":"x"}`, turns: 2, cost: 0.0020441, tokens: used(2), failure: &Error{Kind: Malformed}, says: "no answer",
			script: play(says(`{"name":"x"}`))},
		{name: "turns", ask: func(r *Request) { r.Permission, r.Extra = PermitAll, []string{"--max-turns=1"} }, turns: 2, cost: 0.0010221, tokens: used(1), failure: &Error{Kind: Unfinished}, says: "maximum number of turns",
			script: play(bash("echo a"), bash("echo b"), says("done"))},
		{name: "budget", ask: func(r *Request) { r.Permission, r.MaxUSD = PermitAll, 0.0001 }, turns: 1, cost: 0.0010221, tokens: used(1), failure: &Error{Kind: Unfinished}, says: "maximum budget",
			script: play(bash("echo a"), says("done"))},
		{name: "background", ask: permitAll, text: "ok", turns: 3, cost: 0.0030661, tokens: used(3),
			script: []scriptedapi.Play{
				{Times: 1, Steps: []scriptedapi.Step{uses("Bash", map[string]any{"command": "sleep 1; echo hi", "description": "x", "run_in_background": true}), says("ok")}},
				{Steps: []scriptedapi.Step{says("ok")}}, // after the command has ended
			}},
		{name: "overloaded", failure: &Error{Kind: Transient}, says: "529", turns: 1, text: "*", script: refuse(529, "overloaded_error", "Overloaded", nil)},
		{name: "broken", failure: &Error{Kind: Transient}, says: "500", turns: 1, text: "*", script: refuse(500, "api_error", "internal", nil)},
		{name: "rate", failure: &Error{Kind: Transient}, says: "retry in 1s", turns: 1, text: "*",
			script: refuse(429, "rate_limit_error", "slower", map[string]string{"retry-after": "1"})},
		{name: "limit", env: []string{"CLAUDE_CODE_OAUTH_TOKEN=test"}, failure: &Error{Kind: Limit}, says: "wait until 2100-01-01T00:00:00Z", turns: 1, text: "*",
			script: refuse(429, "rate_limit_error", "no more", map[string]string{"anthropic-ratelimit-unified-status": "rejected",
				"anthropic-ratelimit-unified-reset": "4102444800", "anthropic-ratelimit-unified-representative-claim": "five_hour"})},
		{name: "credit", failure: &Error{Kind: Limit}, says: "Credit balance is too low", turns: 1, text: "*",
			script: refuse(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.", nil)},
		{name: "key", failure: &Error{Kind: Refused}, says: "Invalid API key", turns: 1, text: "*", script: refuse(401, "authentication_error", "invalid x-api-key", nil)},
		{name: "model", ask: func(r *Request) { r.Model = "nope" }, failure: &Error{Kind: Refused}, says: "(nope)", turns: 1, text: "*", script: refuse(404, "not_found_error", "model: nope", nil)},
		{name: "network", env: []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:9"}, failure: &Error{Kind: Transient}, says: "Connection", turns: 1, text: "*"},
		{name: "session", ask: func(r *Request) { r.Resume = "11111111-1111-4111-8111-111111111111" }, failure: &Error{Kind: Refused}, says: "No conversation found"},
	}
}

func otherScenarios() []scenario {
	used := func(n int64) Usage { return Usage{Input: 93 * n, Output: 20 * n, CacheRead: 7 * n} }
	answer := `{"name":"n","count":3}`
	schema := func(r *Request) { r.Schema = []byte(strictSchema) }
	codex := []scenario{
		{name: "tools", ask: permitAll, text: "All done.", turns: 1, tokens: used(2),
			script: play(uses("exec_command", map[string]any{"cmd": `echo hi > hello.txt; echo '{"type":"turn.completed","usage":{}}'`}), says("All done."))},
		{name: "structured", ask: schema, text: answer, answer: answer, turns: 1, tokens: used(1), script: play(says(answer))},
		{name: "unstructured", ask: schema, text: `{"name":"n"}`, turns: 1, tokens: used(1), failure: &Error{Kind: Malformed}, says: "line 1, column 1: missing property 'count'", script: play(says(`{"name":"n"}`))},
		{name: "limit", failure: &Error{Kind: Limit}, says: "wait until 2100-01-0", script: fails(429, map[string]any{"type": "usage_limit_reached", "message": "no more", "resets_at": 4102574400})},
		{name: "credit", failure: &Error{Kind: Limit}, says: "Quota exceeded", script: fails(429, map[string]any{"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your current quota"})},
		{name: "key", failure: &Error{Kind: Refused}, says: "401", script: fails(401, map[string]any{"message": "Incorrect API key provided"})},
		{name: "broken", failure: &Error{Kind: Transient}, says: "high demand", script: fails(500, map[string]any{"message": "internal"})},
	}
	write := uses("write_file", map[string]any{"file_path": "hello.txt", "content": "hi\n"})
	gemini := []scenario{
		{name: "tools", ask: permitAll, text: "All done.", turns: 1, tokens: used(2),
			script: play(write, says("All done."))},
		{name: "denied", text: "I may not.", turns: 1, tokens: used(2), denied: "write_file",
			script: play(write, says("I may not."))},
		{name: "structured", ask: schema, text: "```json\n" + answer + "\n```", answer: answer, turns: 1, tokens: used(1), script: play(says("```json\n" + answer + "\n```"))},
		{name: "key", failure: &Error{Kind: Refused}, says: "API key not valid", turns: 1, script: fails(401, map[string]any{"code": 401, "message": "API key not valid"})},
		{name: "model", failure: &Error{Kind: Refused}, says: "models/x is not found", turns: 1, script: fails(404, map[string]any{"code": 404, "message": "models/x is not found"})},
	}
	for i := range codex {
		codex[i].agent = "codex"
	}
	for i := range gemini {
		more := gemini[i].ask
		gemini[i].agent, gemini[i].ask = "gemini", func(r *Request) {
			r.Model = "gemini-2.5-pro" // otherwise it asks a model to choose the model
			if more != nil {
				more(r)
			}
		}
	}
	return append(codex, gemini...)
}

// strictSchema is countSchema in the form that the Responses API requires.
const strictSchema = `{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"}},"required":["name","count"],"additionalProperties":false}`

// request returns the request of the scenario in a directory.
func (s *scenario) request(dir string) Request {
	r := Request{Prompt: "Do it.", Dir: dir, Env: []string{}}
	if s.ask != nil {
		s.ask(&r)
	}
	return r
}

// check compares the outcome of a call with the scenario. exact prices are those of the recorded
// version; other versions have other prices and default models.
func (s *scenario) check(t *testing.T, res Result, err error, exact bool) {
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
	if d := res.CostUSD - s.cost; exact && (d > 1e-6 || d < -1e-6) || (res.CostUSD > 0) != (s.cost > 0) || res.Priced != (s.agent == "claude") {
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
