package scriptedapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient returns the vendor's client, which defines the API.
func newClient(t *testing.T, url string) anthropic.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return anthropic.NewClient(option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(), option.WithAPIKey("test"), option.WithBaseURL(url),
		option.WithMaxRetries(0), option.WithHTTPClient(&http.Client{Transport: transport}))
}

func asking(messages ...anthropic.MessageParam) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: "m", MaxTokens: 100, Messages: messages}
}

func user(blocks ...anthropic.ContentBlockParamUnion) anthropic.MessageParam {
	return anthropic.NewUserMessage(blocks...)
}

// ask sends a request with or without streaming.
func ask(t *testing.T, c anthropic.Client, stream bool, params anthropic.MessageNewParams) (*anthropic.Message, error) {
	if !stream {
		return c.Messages.New(t.Context(), params)
	}
	events := c.Messages.NewStreaming(t.Context(), params)
	defer events.Close()
	whole := &anthropic.Message{}
	for events.Next() {
		if err := whole.Accumulate(events.Current()); err != nil {
			return nil, err
		}
	}
	return whole, events.Err()
}

func modes(t *testing.T, test func(t *testing.T, stream bool)) {
	t.Run("whole", func(t *testing.T) { test(t, false) })
	t.Run("stream", func(t *testing.T) { test(t, true) })
}

// A conversation goes through its steps, independent of other conversations.
func TestConversation(t *testing.T) {
	modes(t, func(t *testing.T, stream bool) {
		s := StartIn(t, "/work/of it",
			Play{Prompt: "never"}.with(Step{Text: "no"}),
			Play{Prompt: `apply (\w+)`}.with(
				Step{Text: "Grüße, {1}.", Tools: []Tool{Write("{dir}/{1}.txt", "{0} €"), Bash("echo ${HOME} {}")}},
				Step{Expect: "written", Tools: []Tool{{Name: "Deep", Input: map[string]any{"list": []any{"{1}", 3.0, map[string]any{"in": "{1}"}}}}}, Usage: Usage{Input: 5}},
				Step{Text: "done"}))
		c := newClient(t, s.URL)
		begin := asking(user(anthropic.NewTextBlock("<system-reminder>never</system-reminder>"), anthropic.NewTextBlock("apply posts")))
		first, err := ask(t, c, stream, begin)
		if err != nil {
			t.Fatal(err)
		}
		if len(first.Content) != 3 || first.Content[0].Text != "Grüße, posts." || first.StopReason != "tool_use" || first.Model != "m" || first.Usage.OutputTokens != 20 {
			t.Fatalf("%s", first.RawJSON())
		}
		for i, want := range []string{`{"content":"apply posts €","file_path":"/work/of it/posts.txt"}`, `{"command":"echo ${HOME} {}","description":"a step of the script"}`} {
			if got := string(first.Content[i+1].Input); got != want {
				t.Errorf("%s; want %s", got, want)
			}
		}
		if _, err := ask(t, c, stream, asking(user(anthropic.NewTextBlock("apply users")))); err != nil { // another client
			t.Fatal(err)
		}
		results := user(anthropic.NewToolResultBlock(first.Content[1].ID, "written", false), anthropic.NewToolResultBlock(first.Content[2].ID, "ran", false),
			anthropic.NewTextBlock("<system-reminder>well done</system-reminder>"))
		second, err := ask(t, c, stream, asking(begin.Messages[0], first.ToParam(), results))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(second.Content[0].Input); got != `{"list":["posts",3,{"in":"posts"}]}` || second.Usage.InputTokens != 5 {
			t.Errorf("%s", got)
		}
		third, err := ask(t, c, stream, asking(begin.Messages[0], first.ToParam(), results, second.ToParam(), user(anthropic.NewToolResultBlock(second.Content[0].ID, "", false))))
		if err != nil || third.Content[0].Text != "done" || third.StopReason != "end_turn" {
			t.Errorf("%+v, %v", third, err)
		}
		list := s.Requests()
		if len(list) != 4 || list[2].Prompt != "apply posts" || strings.Join(list[2].Results, ";") != "written;ran" ||
			list[2].Stream != stream || list[2].Header.Get("X-Api-Key") != "test" {
			t.Errorf("%+v", list)
		}
	})
}

func (p Play) with(steps ...Step) Play {
	p.Steps = steps
	return p
}

// A request without an answer in the script is an error and is reported.
func TestNoAnswer(t *testing.T) {
	play := Play{Prompt: "once", Times: 1}.with(Step{Tools: []Tool{Bash("true")}}, Step{Expect: "^fine$", Text: "done"})
	s, err := New("", play)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	defer web.Close()
	c := newClient(t, web.URL)
	once := user(anthropic.NewTextBlock("once"))
	first, err := c.Messages.New(t.Context(), asking(once))
	if err != nil {
		t.Fatal(err)
	}
	result := func(id, text string) anthropic.MessageParam {
		return user(anthropic.NewToolResultBlock(id, text, false))
	}
	for _, messages := range [][]anthropic.MessageParam{
		{user(anthropic.NewTextBlock("something else"))},
		{once}, // the second time
		{once, first.ToParam(), result(first.Content[0].ID, "not fine")},
		{once, first.ToParam(), result("toolu_0_1_000009", "fine")},
		{once, first.ToParam(), result("toolu_7_0_000009", "fine")},
		{once, first.ToParam(), result("of another client", "fine")},
	} {
		_, err := c.Messages.New(t.Context(), asking(messages...))
		var refused *anthropic.Error
		if !errors.As(err, &refused) || refused.StatusCode != http.StatusBadRequest {
			t.Errorf("%v", err)
		}
	}
	want := []string{`no play matches the prompt "something else"`, `no play matches the prompt "once"`, `play 0, step 1 expects the tool results "^fine$", got "not fine"`,
		`play 0 has no step after 1`, `the results answer the tool use "toolu_7_0_000009"`, `the results answer the tool use "of another client"`}
	for i, problem := range s.problems {
		if len(s.problems) != len(want) || !strings.Contains(problem, want[i]) {
			t.Errorf("%d: %s", i, problem)
		}
	}
	for _, wrong := range []Play{{}, Play{Prompt: "("}.with(Step{}), Play{}.with(Step{Expect: "x"}), Play{}.with(Step{}, Step{Expect: "("}),
		Play{}.with(Step{Tools: []Tool{Write("{dir}/x", "x")}})} {
		if _, err := New("", wrong); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}

// A script cannot make an agent write outside of the directories of its test.
func TestStaysInside(t *testing.T) {
	for path, inside := range map[string]bool{"/base/x": true, "x": true, filepath.Join(os.TempDir(), "x"): true, "/app/x": false, "/base/../x": false, "/basement": false} {
		if err := (Step{Tools: []Tool{Write(path, "x")}}).staysInside("/base"); (err == nil) != inside {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Failures reach the client like those of the real API.
func TestFailures(t *testing.T) {
	modes(t, func(t *testing.T, stream bool) {
		s := Start(t,
			Play{Prompt: "rate", Times: 1}.with(Step{Fail: &Fail{Status: 429, Type: "rate_limit_error", Message: "slow", Header: map[string]string{"Retry-After": "3"}}}),
			Play{Prompt: "rate"}.with(Step{Text: "fine", Wait: 20 * time.Millisecond}),
			Play{Prompt: "cut"}.with(Step{Text: strings.Repeat("x", 20_000), Cut: true}),
			Play{Prompt: "hang"}.with(Step{Hang: true}))
		c := newClient(t, s.URL)
		_, err := ask(t, c, stream, asking(user(anthropic.NewTextBlock("rate"))))
		var refused *anthropic.Error
		if !errors.As(err, &refused) || refused.StatusCode != 429 || refused.Type() != "rate_limit_error" || refused.Response.Header.Get("Retry-After") != "3" {
			t.Errorf("%v", err)
		}
		if m, err := ask(t, c, stream, asking(user(anthropic.NewTextBlock("rate")))); err != nil || m.Content[0].Text != "fine" {
			t.Errorf("the second time: %v", err)
		}
		if _, err := ask(t, c, stream, asking(user(anthropic.NewTextBlock("cut")))); err == nil {
			t.Error("an answer that was cut came whole")
		}
		count, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "m", Messages: []anthropic.MessageParam{user(anthropic.NewTextBlock("rate"))}})
		if err != nil || count.InputTokens != 10 {
			t.Errorf("%+v, %v", count, err)
		}
		if n := len(s.Requests()); n != 3 {
			t.Errorf("%d requests", n)
		}
	})
}
