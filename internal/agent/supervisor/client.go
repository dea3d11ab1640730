package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"

	"lockkeeper"
)

// A Client is a confined command's end of the socket.
type Client struct {
	token string
	http  http.Client
}

// FromEnviron returns a client for the supervisor in the environment. It returns false if there
// is none.
func FromEnviron(getenv func(string) string) (*Client, bool) {
	socket, token := getenv(SocketVariable), getenv(TokenVariable)
	if socket == "" || token == "" {
		return nil, false
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{token: token, http: http.Client{Timeout: 2 * patience,
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}, true
}

// Grant returns the paths that this command may write, and until when.
func (c *Client) Grant(ctx context.Context) (GrantView, error) {
	var view GrantView
	err := c.call(ctx, http.MethodGet, "/grant", nil, &view)
	return view, err
}

// Gap records, for people to decide, that this command wants to change a path that it must not
// change. It changes no permission.
func (c *Client) Gap(ctx context.Context, path, reason string) error {
	return c.call(ctx, http.MethodPost, "/gaps", gapBody{path, reason}, nil)
}

func (c *Client) call(ctx context.Context, method, route string, body, into any) error {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return fmt.Errorf("supervisor: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+route, &text)
	if err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	defer res.Body.Close()
	from := json.NewDecoder(io.LimitReader(res.Body, 16<<20))
	if res.StatusCode >= 300 {
		var refusal errorBody
		if err := from.Decode(&refusal); err != nil {
			refusal = errorBody{Error: res.Status, Code: lockkeeper.CodeFailed} // the answer is not JSON, so it is not from a Handler
		}
		return &AnswerError{Class: refusal.Code, Message: refusal.Error}
	}
	if into == nil {
		return nil
	}
	if err := from.Decode(into); err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	return nil
}
