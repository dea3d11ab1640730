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

// answer is what every answer has. Clients that read values show their models nothing else,
// so the words are in there as well.
type answer struct {
	Text     string            `json:"text" jsonschema:"the answer in words"`
	Callsign string            `json:"callsign" jsonschema:"how others see this session"`
	Refused  []refusal.Refusal `json:"refused,omitempty" jsonschema:"what may not be written, why, and what to do instead"`
	Failed   *failure          `json:"failed,omitempty" jsonschema:"why nothing was done"`
	News     []string          `json:"news,omitempty" jsonschema:"what became free, and what became of deferred changes"`
}

func (a *answer) common() *answer { return a }

// failure is an error as a value.
type failure struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Next    string         `json:"next,omitempty"`
	Facts   map[string]any `json:"facts,omitempty"`
}

// told is an answer of a tool.
type told[Out any] interface {
	*Out
	common() *answer
	text() string // of what was done
}

// add adds a tool, whose answers are text for the model and the same as a value.
func add[In, Out any, A told[Out]](s *Server, t *mcp.Tool, do func(context.Context, *visit, In) (Out, error)) {
	mcp.AddTool(s.mcp, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		ctx, cancel := context.WithTimeout(ctx, longestCall)
		defer cancel()
		out, err := carryOut[In, Out, A](ctx, s, req, in, do)
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

// carryOut makes a call. A panic is a failure of this call, and ends no other session.
func carryOut[In, Out any, A told[Out]](ctx context.Context, s *Server, req *mcp.CallToolRequest, in In, do func(context.Context, *visit, In) (Out, error)) (out Out, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a tool panicked", "tool", req.Params.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("something went wrong in %s: %v", req.Params.Name, p)
		}
	}()
	who, err := s.callerOf(req.Session, req.Extra)
	if err != nil {
		return out, err
	}
	if err := legible(req.Params.Arguments); err != nil {
		return out, err
	}
	v := &visit{Server: s, who: who}
	out, err = do(ctx, v, in)
	a := A(&out).common()
	news, wrong := v.news(ctx)
	a.Callsign, a.News = v.seated.Callsign, news
	return out, errors.Join(err, wrong)
}

// fail notes why something was not done.
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

// lines is the text that every answer adds to its result.
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
