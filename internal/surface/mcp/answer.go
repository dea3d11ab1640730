package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lockkeeper"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/internal/surface/facts"
)

// An answer holds the fields that all answers share. Text is part of the structured value,
// because some clients show their models only that.
type answer struct {
	Text     string            `json:"text" jsonschema:"the answer in words"`
	Callsign string            `json:"callsign" jsonschema:"how others see this session"`
	Refused  []refusal.Refusal `json:"refused,omitempty" jsonschema:"what may not be written, why, and what to do instead"`
	Failed   *failure          `json:"failed,omitempty" jsonschema:"why the call did nothing"`
	News     []string          `json:"news,omitempty" jsonschema:"files that became free, and results of deferred changes"`
}

func (a *answer) common() *answer { return a }

// A failure is an error as structured data.
type failure struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Next    string         `json:"next,omitempty"`
	Facts   map[string]any `json:"facts,omitempty"`
}

// A result is the answer of a tool.
type result[Out any] interface {
	*Out
	common() *answer
	text() string // text formats the result
}

// add registers a tool that answers with text and the same facts as structured data.
func add[In, Out any, A result[Out]](s *Server, t *mcp.Tool, do func(context.Context, *call, In) (Out, error)) {
	mcp.AddTool(s.mcp, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		ctx, cancel := context.WithTimeout(ctx, longestCall)
		defer cancel()
		out, err := run[In, Out, A](ctx, s, req, in, do)
		a := A(&out).common()
		a.fail(err)
		lines := a.lines()
		if err == nil {
			lines = append([]string{A(&out).text()}, lines...)
		}
		a.Text = strings.Join(lines, "\n\n")
		return &mcp.CallToolResult{IsError: a.isRefusal(), Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}, out, nil
	})
}

// run executes a call. A panic fails only this call.
func run[In, Out any, A result[Out]](ctx context.Context, s *Server, req *mcp.CallToolRequest, in In, do func(context.Context, *call, In) (Out, error)) (out Out, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a tool panicked", "tool", req.Params.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%s failed: %v", req.Params.Name, p)
		}
	}()
	who, err := s.callerOf(req.Session, req.Extra)
	if err != nil {
		return out, err
	}
	if err := legible(req.Params.Arguments); err != nil {
		return out, err
	}
	c := &call{Server: s, who: who}
	out, err = do(ctx, c, in)
	a := A(&out).common()
	news, wrong := c.news(ctx)
	a.Callsign, a.News = c.info.Callsign, news
	return out, errors.Join(err, wrong)
}

// fail records why the call did nothing.
func (a *answer) fail(err error) {
	var refused refusal.Refusal
	switch {
	case err == nil:
	case errors.As(err, &refused):
		a.Refused = append(a.Refused, refused)
	default:
		a.Failed = &failure{Code: string(lockkeeper.CodeOf(err)), Message: lockkeeper.Message(err), Next: lockkeeper.NextStep(err), Facts: facts.Of(err)}
	}
}

func (a *answer) isRefusal() bool { return len(a.Refused) > 0 || a.Failed != nil }

// lines returns the refusals, the failure and the news of an answer.
func (a *answer) lines() (list []string) {
	for _, r := range a.Refused {
		list = append(list, r.String())
	}
	if f := a.Failed; f != nil {
		text := "FAILED " + f.Message
		if f.Next != "" {
			text += "\nnext: " + f.Next
		}
		list = append(list, text)
	}
	return append(list, a.News...)
}
