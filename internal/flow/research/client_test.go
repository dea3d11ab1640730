package research

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/scriptedapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-ant-a-key-that-must-stay-secret"

// newClient returns a client of an API. Its connections end with the test.
func newClient(t *testing.T, url string, timeout time.Duration) *Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := New(Options{APIKey: key, BaseURL: url, Timeout: timeout, HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A question is one request with only the text: no tools, the default model, and the key in a
// header.
//
// shows: PL-13 PL-68 PL-70 PL-69
func TestAsk(t *testing.T) {
	api := scriptedapi.Start(t, scriptedapi.Play{Prompt: "pagination of (\\w+)", Steps: []scriptedapi.Step{{Text: "Keyset, for {1}.\n"}}})
	c := newClient(t, api.URL, 0)
	res, err := c.Ask(t.Context(), "Which pagination of posts?")
	if err != nil {
		t.Fatal(err)
	}
	if res.Text != "Keyset, for posts." || res.Model != "claude-sonnet-4-6" || res.Priced || res.Duration == 0 ||
		res.Usage != (agent.Usage{Input: 100, Output: 20, CacheRead: 7, CacheWrite: 3}) {
		t.Errorf("%+v", res)
	}
	requests := api.Requests()
	if len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	r := requests[0]
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &members); err != nil {
		t.Fatal(err)
	}
	if len(members) != 3 || string(members["model"]) != `"claude-sonnet-4-6"` || string(members["max_tokens"]) != "16000" || r.Prompt != "Which pagination of posts?" {
		t.Errorf("asked %s", r.Body)
	}
	if r.Header.Get("X-Api-Key") != key || strings.Contains(string(r.Body), key) || r.Header.Get("Authorization") != "" {
		t.Errorf("the key is not where it belongs: %v", r.Header)
	}
}

// The client does not read another key or address from the environment.
func TestEnvironmentIsNotAsked(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "another-key")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "a-token")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Other: yes")
	api := scriptedapi.Start(t, scriptedapi.Play{Steps: []scriptedapi.Step{{Text: "ok"}}})
	if _, err := newClient(t, api.URL, 0).Ask(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	h := api.Requests()[0].Header
	if h.Get("X-Api-Key") != key || h.Get("Authorization") != "" || h.Get("X-Other") != "" {
		t.Errorf("%v", h)
	}
}

// Every failure has a class, a reason and a next step. It costs one request and never shows the
// key.
//
// shows: PL-84
func TestFailures(t *testing.T) {
	fail := func(status int, kind, message string, header ...string) scriptedapi.Step {
		f := &scriptedapi.Fail{Status: status, Type: kind, Message: message, Header: map[string]string{}}
		for i := 0; i+1 < len(header); i += 2 {
			f.Header[header[i]] = header[i+1]
		}
		return scriptedapi.Step{Fail: f}
	}
	body := func(status int, mime, text string) scriptedapi.Step {
		return scriptedapi.Step{Fail: &scriptedapi.Fail{Status: status, Body: text, Header: map[string]string{"Content-Type": mime}}}
	}
	for name, test := range map[string]struct {
		step  scriptedapi.Step
		want  error
		words string // part of the message
	}{
		"empty":          {scriptedapi.Step{}, &agent.Error{Kind: agent.Unfinished}, "the answer is empty"},
		"blank":          {scriptedapi.Step{Text: " \n"}, &agent.Error{Kind: agent.Unfinished}, "the answer is empty"},
		"declined":       {scriptedapi.Step{Text: "I", Stop: "refusal"}, &agent.Error{Kind: agent.Unfinished}, "the model declined to answer"},
		"cut":            {scriptedapi.Step{Text: "Half of", Stop: "max_tokens"}, &agent.Error{Kind: agent.Unfinished}, "cut off after 20 tokens"},
		"window":         {scriptedapi.Step{Text: "Half of", Stop: "model_context_window_exceeded"}, &agent.Error{Kind: agent.Unfinished}, "context window"},
		"another reason": {scriptedapi.Step{Text: "x", Stop: "pause_turn"}, &agent.Error{Kind: agent.Unfinished}, `"pause_turn"`},
		"a tool":         {scriptedapi.Step{Text: "x", Tools: []scriptedapi.Tool{scriptedapi.Bash("id")}}, &agent.Error{Kind: agent.Unfinished}, `"tool_use"`},

		"key":         {fail(401, "authentication_error", "invalid x-api-key "+key), &agent.Error{Kind: agent.Refused}, "ANTHROPIC_API_KEY"},
		"permission":  {fail(403, "permission_error", "not for you"), &agent.Error{Kind: agent.Refused}, "not for you"},
		"model":       {fail(404, "not_found_error", "model: claude-none"), &agent.Error{Kind: agent.Refused}, "claude-sonnet-4-6"},
		"too long":    {fail(413, "request_too_large", "too large"), &agent.Error{Kind: agent.Unfinished}, "HTTP 413"},
		"invalid":     {fail(400, "invalid_request_error", "prompt is too long"), &agent.Error{Kind: agent.Unfinished}, "prompt is too long"},
		"credit":      {fail(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."), &agent.Error{Kind: agent.Limit}, "credit balance"},
		"billing":     {fail(402, "billing_error", "pay"), &agent.Error{Kind: agent.Limit}, "pay"},
		"spend limit": {fail(400, "invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."), &agent.Error{Kind: agent.Limit}, "wait until 2026-04-01T00:00:00Z"},
		"rate":        {fail(429, "rate_limit_error", "slow down", "Retry-After", "7"), &agent.Error{Kind: agent.Transient}, "retry in 7s"},
		"overloaded":  {fail(529, "overloaded_error", "Overloaded"), &agent.Error{Kind: agent.Transient}, "HTTP 529"},
		"broken":      {fail(500, "api_error", "Internal"), &agent.Error{Kind: agent.Transient}, "HTTP 500"},
		"gateway":     {body(502, "text/html", "<html>\x1b[31mBad\ngateway "+key+"</html>"), &agent.Error{Kind: agent.Transient}, "<html> [31mBad gateway …</html>"},

		"a page":        {body(200, "text/html", "<html>Log in</html>"), &agent.Error{Kind: agent.Garbage}, "<html>Log in"},
		"no JSON":       {body(200, "application/json", `{"type":"message","content":[{"type`), &agent.Error{Kind: agent.Garbage}, "not a message"},
		"another thing": {body(200, "application/json", `{"data":[]}`), &agent.Error{Kind: agent.Garbage}, "not a message"},
		"null":          {body(200, "application/json", `null`), &agent.Error{Kind: agent.Garbage}, "not a message"},
		"a list":        {body(200, "application/json", `[1]`), &agent.Error{Kind: agent.Garbage}, "not a message"},
		"nothing":       {body(200, "application/json", ` `), &agent.Error{Kind: agent.Garbage}, "not a message"},
		"a flood":       {body(200, "application/json", `{"content":"`+strings.Repeat("x", maxResponse)+`"}`), &agent.Error{Kind: agent.Garbage}, "more than 16 MB"},
		"sent away":     {scriptedapi.Step{Fail: &scriptedapi.Fail{Status: 307, Header: map[string]string{"Location": "http://127.0.0.1:1/"}}}, &agent.Error{Kind: agent.Refused}, "status 307"},

		"cut off": {scriptedapi.Step{Text: strings.Repeat("x", 10_000), Cut: true}, &agent.Error{Kind: agent.Transient}, "in the middle of the answer"},
		"hanging": {scriptedapi.Step{Hang: true}, &agent.Error{Kind: agent.TimedOut}, "timed out after 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			api := scriptedapi.Start(t, scriptedapi.Play{Steps: []scriptedapi.Step{test.step}})
			timeout := 10 * time.Minute
			if test.step.Hang {
				timeout = 5 * time.Second
			}
			res, err := newClient(t, api.URL, timeout).Ask(t.Context(), "hello")
			if agent.KindOf(err) != agent.KindOf(test.want) || fmt.Sprintf("%T", err) != fmt.Sprintf("%T", test.want) {
				t.Fatalf("%T %v; want %T %v", err, err, test.want, test.want)
			}
			if text := fmt.Sprintf("%v %+v", err, res); !strings.Contains(text, test.words) || strings.Contains(text, key) || len(text) > 1000 || !strings.Contains(text, "next:") {
				t.Errorf("%s", text)
			}
			if n := len(api.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
			if answered := test.step.Fail == nil && !test.step.Cut && !test.step.Hang; answered != (res.Usage.Total() == 130) {
				t.Errorf("what it cost: %+v", res.Usage)
			}
		})
	}
}

// An API that is unreachable, or that hangs up early, is a temporary failure.
func TestUnreachableAPI(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	mute := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer mute.Close()
	for name, url := range map[string]string{"gone": gone.URL, "mute": mute.URL} {
		_, err := newClient(t, url, 0).Ask(t.Context(), "hello")
		var passing *agent.Error
		if !errors.As(err, &passing) || passing.Kind != agent.Transient || passing.Status != 0 || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("%s: %T %v", name, err, err)
		}
	}
	strange := httptest.NewUnstartedServer(http.NotFoundHandler())
	strange.Config.ErrorLog = log.New(io.Discard, "", 0)
	strange.StartTLS()
	defer strange.Close()
	_, err := newClient(t, strange.URL, 0).Ask(t.Context(), "hello")
	if agent.KindOf(err) != agent.Refused || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %T %v", err, err)
	}
}

// A canceled request returns the cause of its context.
func TestCanceled(t *testing.T) {
	api := scriptedapi.Start(t, scriptedapi.Play{Steps: []scriptedapi.Step{{Hang: true}}})
	c := newClient(t, api.URL, 0)
	why := errors.New("the operator pasted the text")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for len(api.Requests()) == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel(why)
	}()
	defer cancel(nil)
	if _, err := c.Ask(ctx, "hello"); !errors.Is(err, why) {
		t.Errorf("%T %v", err, err)
	}
	if _, err := c.Ask(ctx, "hello"); !errors.Is(err, why) || len(api.Requests()) != 1 {
		t.Errorf("asked after the end: %v, %d requests", err, len(api.Requests()))
	}
}

// The one place that tries again is agent.Retry; it waits as long as the API asks.
//
// shows: PL-84
func TestRetried(t *testing.T) {
	again := &scriptedapi.Fail{Status: 429, Type: "rate_limit_error", Message: "slow down", Header: map[string]string{"Retry-After": "1"}}
	api := scriptedapi.Start(t,
		scriptedapi.Play{Times: 1, Steps: []scriptedapi.Step{{Fail: again}}},
		scriptedapi.Play{Times: 1, Steps: []scriptedapi.Step{{Fail: &scriptedapi.Fail{Status: 529, Type: "overloaded_error"}}}},
		scriptedapi.Play{Steps: []scriptedapi.Step{{Text: "at last"}}})
	c := newClient(t, api.URL, 0)
	policy := agent.RetryPolicy{Attempts: 3, First: time.Millisecond, Longest: 2 * time.Second, Random: func() float64 { return 0 }}
	res, err := agent.Retry(t.Context(), policy, func(ctx context.Context, _ int) (agent.Result, error) { return c.Ask(ctx, "hello") })
	if err != nil || res.Text != "at last" {
		t.Fatalf("%+v, %v", res, err)
	}
	requests := api.Requests()
	if len(requests) != 3 || requests[1].At.Sub(requests[0].At) < time.Second || requests[2].At.Sub(requests[1].At) >= time.Second {
		t.Errorf("%d requests, at the wrong times", len(requests))
	}
}

// New refuses options without a key, and the error names the next step.
//
// shows: PL-72
func TestOptions(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		words   string
	}{
		"no key":    {Options{}, "paste"},
		"a line":    {Options{APIKey: key + "\n"}, "without a line end"},
		"tokens":    {Options{APIKey: key, MaxTokens: -1}, "negative"},
		"timeout":   {Options{APIKey: key, Timeout: -1}, "negative"},
		"no URL":    {Options{APIKey: key, BaseURL: "api.example.com"}, "https://host/path"},
		"a user":    {Options{APIKey: key, BaseURL: "https://me:secret@host"}, "without a user"},
		"a relic":   {Options{APIKey: key, BaseURL: "file:///etc/passwd"}, "https://host/path"},
		"a mistake": {Options{APIKey: key, BaseURL: "http://[::1"}, "https://host/path"},
	} {
		_, err := New(test.options)
		var input *lockkeeper.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), test.words) || strings.Contains(err.Error(), "sk-ant") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := New(Options{APIKey: key, MaxTokens: 64_000})
	if err != nil {
		t.Fatal(err)
	}
	var input *lockkeeper.InputError
	if _, err := c.Ask(t.Context(), " \n"); !errors.As(err, &input) {
		t.Errorf("an empty question: %v", err)
	}
}

// Long answers are permitted without streaming: the timeout bounds them.
func TestLongAnswersArePermitted(t *testing.T) {
	api := scriptedapi.Start(t, scriptedapi.Play{Steps: []scriptedapi.Step{{Text: "ok"}}})
	c := newClient(t, api.URL, 0)
	c.options.MaxTokens = 64_000
	if _, err := c.Ask(t.Context(), "hello"); err != nil {
		t.Error(err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"5":                             5 * time.Second,
		"0.5":                           500 * time.Millisecond,
		"-3":                            0,
		"soon":                          0,
		"NaN":                           0,
		"1e300":                         longestRetryAfter,
		"Sun, 01 Mar 2026 12:01:00 GMT": time.Minute,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0,
		"Sun, 01 Mar 2099 11:00:00 GMT": longestRetryAfter,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %s; want %s", value, got, want)
		}
	}
}
