//go:build agents

package agents_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/scriptedapi"
)

// sandboxed runs a test without a sandbox and in the sandbox of this machine. The program must
// work in both.
func sandboxed(t *testing.T, test func(t *testing.T, level sandbox.Level)) {
	t.Helper()
	claudeProgram(t)
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		test(t, sandbox.Level{})
	})
	t.Run("confined", func(t *testing.T) {
		t.Parallel()
		test(t, machine(t))
	})
}

const analysisSchema = `{"type":"object","properties":{"does":{"type":"string"},"screens":{"type":"array","items":{"type":"string"}}},"required":["does","screens"],"additionalProperties":false}`

// An analysis reads the source and answers in the requested form. An answer in another form is
// sent back to the model.
//
// shows: PL-11 PL-12
func TestAnalyze(t *testing.T) {
	sandboxed(t, func(t *testing.T, level sandbox.Level) {
		wrong, right := map[string]any{"does": "lists posts"}, map[string]any{"does": "lists posts", "screens": []any{"index"}}
		s := newStage(t, plays(scriptedapi.Play{Prompt: `^Analyze (\S+)`, Steps: []scriptedapi.Step{
			use(scriptedapi.Read("{dir}/{1}")),
			{Expect: "class Posts", Tools: []scriptedapi.Tool{scriptedapi.Structured(wrong)}},
			{Expect: "screens", Tools: []scriptedapi.Tool{scriptedapi.Structured(right)}},
			{Text: "done"},
		}}))
		write(t, filepath.Join(s.dir, "app/posts.rb"), "class Posts\nend\n")
		r := s.request("Analyze app/posts.rb")
		r.Schema = []byte(analysisSchema)
		res, err := s.call(t.Context(), t, r, s.options(level))
		if err != nil {
			t.Fatalf("%v\n%s", err, s.said(t))
		}
		if string(res.Structured) != `{"does":"lists posts","screens":["index"]}` || res.Session == "" || !res.Priced || res.CostUSD <= 0 || res.Usage.Output < 60 {
			t.Errorf("%+v", res)
		}
		if first := s.api.Requests()[0]; first.Prompt != "Analyze app/posts.rb" {
			t.Errorf("asked %q", first.Prompt)
		}
	})
}

// An agent changes files in its directory, with its tools and with the shell.
//
// shows: PL-27 PL-68 PL-70
func TestApply(t *testing.T) {
	sandboxed(t, func(t *testing.T, level sandbox.Level) {
		s := newStage(t, play(
			scriptedapi.Step{Text: "A new file.", Tools: []scriptedapi.Tool{scriptedapi.Write("{dir}/app/comments.rb", "class Comments\nend\n"), scriptedapi.Read("{dir}/app/posts.rb")}},
			scriptedapi.Step{Expect: "class Posts", Tools: []scriptedapi.Tool{scriptedapi.Edit("{dir}/app/posts.rb", "class Posts", "class Posts # edited")}},
			use(scriptedapi.Bash(`mkdir -p config && printf 'resources :posts\n' > config/routes.rb && rm app/old.rb && pwd`)),
			scriptedapi.Step{Expect: "/runs/1/work", Text: "All done."}))
		write(t, filepath.Join(s.dir, "app/posts.rb"), "class Posts\nend\n")
		write(t, filepath.Join(s.dir, "app/old.rb"), "old\n")
		var told []string
		options := s.options(level)
		options.Tell = func(e agent.Event) {
			if e.Kind == agent.EventToolUse || e.Failed {
				told = append(told, fmt.Sprint(e.Tool, " ", e.Failed))
			}
		}
		res, err := s.call(t.Context(), t, s.request("Apply the batch"), options)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.said(t))
		}
		if got := strings.Join(told, "; "); got != "Write false; Read false; Edit false; Bash false" || res.Text != "All done." || len(res.Denials) > 0 {
			t.Errorf("%s\n%+v", got, res)
		}
		files := readTree(t, s.dir)
		for name, content := range map[string]string{"app/comments.rb": "class Comments\nend\n", "app/posts.rb": "class Posts # edited\nend\n", "config/routes.rb": "resources :posts\n"} {
			if files[name].content != content {
				t.Errorf("%s: %q", name, files[name].content)
			}
		}
		if _, left := files["app/old.rb"]; left || len(files) != 5 {
			t.Errorf("%d entries, one of which was to go: %v", len(files), left)
		}
	})
}

// Each refusal of the API has the class that the pipeline acts on: a temporary one is retried,
// and a used-up account stops the run.
func TestLimits(t *testing.T) {
	t.Parallel()
	fail := func(status int, kind, message string, header map[string]string) scriptedapi.Play {
		return scriptedapi.Play{Steps: []scriptedapi.Step{{Fail: &scriptedapi.Fail{Status: status, Type: kind, Message: message, Header: header}}}}
	}
	once := func(p scriptedapi.Play) scriptedapi.Play {
		p.Times = 1
		return p
	}
	rate := fail(429, "rate_limit_error", "slower", map[string]string{"Retry-After": "1"})
	plan := fail(429, "rate_limit_error", "no more", map[string]string{"anthropic-ratelimit-unified-status": "rejected",
		"anthropic-ratelimit-unified-reset": "4102444800", "anthropic-ratelimit-unified-representative-claim": "five_hour"})
	spending := fail(400, "invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2100-01-01 at 00:00 UTC.", nil)
	cut := scriptedapi.Play{Steps: []scriptedapi.Step{{Text: "half of it", Cut: true}}}
	done := scriptedapi.Play{Steps: []scriptedapi.Step{{Text: "done"}}}
	for name, test := range map[string]struct {
		script   []scriptedapi.Play
		token    bool // logged in to a plan, without an API key
		want     error
		says     string
		requests int // 0: any number
	}{
		"a rate that passes":  {script: []scriptedapi.Play{once(rate), done}, requests: 2},
		"a rate that stays":   {script: []scriptedapi.Play{rate}, want: &agent.Error{Kind: agent.Transient}, says: "HTTP 429", requests: 2},
		"the limit of a plan": {script: []scriptedapi.Play{plan}, token: true, want: &agent.Error{Kind: agent.Limit}, says: "wait until 2100-01-01T00:00:00Z", requests: 1},
		"a limit of spending": {script: []scriptedapi.Play{spending}, want: &agent.Error{Kind: agent.Limit}, says: "usage limits"}, // some versions ask several times
		"cut off":             {script: []scriptedapi.Play{once(cut), done}, requests: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, plays(test.script...))
			r := s.request("Do it")
			if test.token {
				r.Env = append(r.Env, "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=test")
			}
			res, err := s.call(t.Context(), t, r, s.options(sandbox.Level{}))
			if agent.KindOf(err) != agent.KindOf(test.want) || fmt.Sprintf("%T", err) != fmt.Sprintf("%T", test.want) {
				t.Errorf("%T %v; want %T %v\n%s", err, err, test.want, test.want, s.said(t))
			}
			if err != nil && !strings.Contains(err.Error(), test.says) || err == nil && res.Text != "done" {
				t.Errorf("%v, %q", err, res.Text)
			}
			if n := len(s.api.Requests()); test.requests > 0 && n != test.requests {
				t.Errorf("%d requests; want %d", n, test.requests)
			}
		})
	}
}

// A call that times out ends with all its processes. In this test the API hangs, and commands
// run in the background.
func TestTimeout(t *testing.T) {
	sandboxed(t, func(t *testing.T, level sandbox.Level) {
		// A busy machine may need longer to reach the step that hangs.
		for timeout := 5 * time.Second; ; timeout *= 2 {
			s := newStage(t, play(
				use(scriptedapi.Bash("sleep 600 & (setsid nohup sleep 601 >/dev/null 2>&1 &); echo begun")),
				scriptedapi.Step{Expect: "begun", Hang: true}))
			options := s.options(level)
			options.Timeout = timeout
			began := time.Now()
			res, err := s.call(t.Context(), t, s.request("Wait for an answer"), options)
			if len(s.api.Requests()) < 2 && timeout < longest {
				continue
			}
			var late *agent.Error
			if !errors.As(err, &late) || late.Kind != agent.TimedOut || late.Session == "" || late.Session != res.Session {
				t.Errorf("%T %v\n%s", err, err, s.said(t))
			}
			if took := time.Since(began); took < timeout || took > timeout+longest {
				t.Errorf("it took %s", took)
			}
			return
		}
	})
}

// A call that is stopped while a shell command runs leaves no process, and its session can be
// resumed.
//
// shows: GP-15
func TestEndedAndResumed(t *testing.T) {
	sandboxed(t, func(t *testing.T, level sandbox.Level) {
		s := newStage(t, plays(
			scriptedapi.Play{Prompt: "^Sleep", Steps: []scriptedapi.Step{use(scriptedapi.Bash("sleep 600")), {Hang: true}}}, // some versions report the stopped command
			scriptedapi.Play{Prompt: "^Go on", Steps: []scriptedapi.Step{{Text: "done"}}}))
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		why := errors.New("the operator stops it")
		options := s.options(level)
		options.Tell = func(e agent.Event) {
			if e.Kind == agent.EventToolUse {
				stop(why)
			}
		}
		res, err := s.call(ctx, t, s.request("Sleep in the shell"), options)
		if !errors.Is(err, why) || res.Session == "" {
			t.Fatalf("%T %v", err, err)
		}
		r := s.request("Go on")
		r.Resume = res.Session
		again, err := s.call(t.Context(), t, r, s.options(level))
		if err != nil || again.Text != "done" || again.Session != res.Session {
			t.Errorf("%+v, %v\n%s", again, err, s.said(t))
		}
		requests := s.api.Requests()
		if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "Sleep in the shell") {
			t.Error("the session does not remember what it was asked first")
		}
	})
}
