package research

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent"
)

// Defaults of Options.
const (
	DefaultBaseURL   = "https://api.anthropic.com"
	DefaultModel     = "claude-sonnet-4-6"
	DefaultMaxTokens = 16_000
	DefaultTimeout   = 10 * time.Minute
)

const KeyVariable = "ANTHROPIC_API_KEY"

// Options configure a Client.
type Options struct {
	APIKey    string        // required
	BaseURL   string        // empty: DefaultBaseURL
	Model     string        // empty: DefaultModel
	MaxTokens int64         // the longest answer; 0: DefaultMaxTokens
	Timeout   time.Duration // the longest that a question may take; 0: DefaultTimeout

	HTTPClient *http.Client // nil: a client with the default transport
}

// A Client asks questions. It is safe for concurrent use.
type Client struct {
	http     *http.Client
	endpoint string
	options  Options
}

// New returns a client. It refuses options without a key.
func New(o Options) (*Client, error) {
	o.BaseURL = cmp.Or(o.BaseURL, DefaultBaseURL)
	o.Model = cmp.Or(o.Model, DefaultModel)
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if err := o.check(); err != nil {
		return nil, err
	}
	endpoint, err := url.JoinPath(o.BaseURL, "v1/messages")
	if err != nil {
		return nil, fmt.Errorf("address of the API: %w", err)
	}
	return &Client{http: o.httpClient(), endpoint: endpoint, options: o}, nil
}

// check refuses invalid options. Its errors never contain the key.
func (o *Options) check() error {
	switch {
	case o.APIKey == "":
		return &lockkeeper.InputError{Field: KeyVariable, Reason: "not set, so research by the API is not available",
			Next: "research elsewhere and paste the text, or set the variable and start again"}
	case strings.ContainsFunc(o.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }):
		return &lockkeeper.InputError{Field: KeyVariable, Reason: "it has a space or another character that no key has",
			Next: "set it to the key alone, without a line end"}
	case o.MaxTokens < 0:
		return &lockkeeper.InputError{Field: "tokens of an answer", Value: fmt.Sprint(o.MaxTokens), Reason: "negative"}
	case o.Timeout < 0:
		return &lockkeeper.InputError{Field: "timeout", Value: o.Timeout.String(), Reason: "negative"}
	}
	base, err := url.Parse(o.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil {
		return &lockkeeper.InputError{Field: "address of the API", Reason: "not a URL of the form https://host/path", Next: "give the base of the API, without a user"}
	}
	return nil
}

// httpClient returns the given client or a default one, without redirects, which would send the
// key to another address.
func (o *Options) httpClient() *http.Client {
	client := http.Client{}
	if o.HTTPClient != nil {
		client = *o.HTTPClient
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// Ask asks one question. The result has a text, a model and the tokens used; the API returns no
// price. If Ask returns an error, the result has the known facts.
func (c *Client) Ask(ctx context.Context, prompt string) (agent.Result, error) {
	if strings.TrimSpace(prompt) == "" {
		return agent.Result{}, &lockkeeper.InputError{Field: "prompt", Reason: "empty", Next: "say what to research"}
	}
	if ctx.Err() != nil {
		return agent.Result{}, context.Cause(ctx)
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	seen, err := c.post(limited, prompt)
	res := agent.Result{Model: c.options.Model, Turns: 1, Duration: time.Since(began)}
	switch {
	case err != nil && ctx.Err() != nil:
		return res, context.Cause(ctx)
	case err != nil && limited.Err() != nil:
		return res, &agent.Error{Kind: agent.TimedOut, Origin: c.origin(), Reason: c.options.Timeout.String()}
	case err != nil:
		return res, c.unreachable(seen, err)
	case seen.status != http.StatusOK:
		return res, c.refusal(seen)
	}
	var m message
	if err := json.Unmarshal(seen.body, &m); err != nil || m.Content == nil {
		return res, c.garbage(seen)
	}
	return c.answer(res, m)
}

func (c *Client) origin() agent.Origin { return agent.Origin{Agent: "the Messages API"} }
