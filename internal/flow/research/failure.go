package research

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"lockkeeper/internal/agent"
)

func (c *Client) garbage(seen response) error {
	reason := fmt.Sprintf("a response of type %q that is not a message", c.quote(seen.header.Get("Content-Type")))
	return &agent.Error{Kind: agent.Garbage, Origin: c.origin(), Reason: reason, Sample: c.sample(seen)}
}

const sampled = 1 << 10

func (c *Client) sample(seen response) string {
	return c.quote(string(seen.body[:min(len(seen.body), sampled)]))
}

// unreachable classifies a missing or interrupted response.
func (c *Client) unreachable(seen response, err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &agent.Error{Kind: agent.Garbage, Origin: c.origin(), Reason: fmt.Sprintf("a response of more than %d MB", maxResponse>>20), Sample: c.sample(seen)}
	}
	what := "no answer"
	if seen.status != 0 {
		what = "the connection ended in the middle of the answer"
	}
	var at *url.Error // a *url.Error has the address, which messages must not show
	if errors.As(err, &at) {
		err = at.Err
	}
	reason := what + ": " + c.quote(err.Error())
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &agent.Error{Kind: agent.Refused, Origin: c.origin(), Reason: reason, Next: "check the address of the API, and whether this machine trusts its certificate"}
	}
	return &agent.Error{Kind: agent.Transient, Origin: c.origin(), Reason: reason}
}

// limitWords match the messages of the API about used-up limits. They come with the statuses
// 400, 402, 403 and 429, which have other meanings as well:
//
//	400 Your credit balance is too low to access the Anthropic API. …
//	400 You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.
//	429 Extra usage is required for long context requests.
var limitWords = regexp.MustCompile(`(?i)credit balance|credits are required|usage limit|spend limit|extra usage`)

// refusal classifies a response whose status is not 200.
func (c *Client) refusal(seen response) error {
	status := seen.status
	if status < 400 {
		return &agent.Error{Kind: agent.Refused, Origin: c.origin(), Next: "check the address of the API",
			Reason: fmt.Sprintf("it answered with status %d and no message", status)}
	}
	var said struct {
		Error struct{ Type, Message string }
	}
	text := string(seen.body)
	if json.Unmarshal(seen.body, &said) == nil && said.Error.Message != "" {
		text = said.Error.Message
	}
	if text = c.quote(text); text == "" {
		text = fmt.Sprintf("status %d, without a reason", status)
	}
	switch {
	case said.Error.Type == "billing_error" || status == http.StatusPaymentRequired || status < 500 && limitWords.MatchString(text):
		return &agent.Error{Kind: agent.Limit, Origin: c.origin(), Reason: text, ResetAt: regained(text)}
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooManyRequests || status >= 500:
		return &agent.Error{Kind: agent.Transient, Origin: c.origin(), Status: status, Reason: text, RetryAfter: retryAfter(seen.header, time.Now())}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &agent.Error{Kind: agent.Refused, Origin: c.origin(), Reason: text, Next: "check that the key in " + KeyVariable + " is valid and permits the model " + c.options.Model + ", or paste the text"}
	case status == http.StatusNotFound:
		return &agent.Error{Kind: agent.Refused, Origin: c.origin(), Reason: text, Next: "check the model " + c.options.Model + " and the address of the API, or paste the text"}
	}
	// Other statuses are about this question, for example that it is too long.
	return &agent.Error{Kind: agent.Unfinished, Origin: c.origin(), Reason: fmt.Sprintf("the question was refused (HTTP %d): %s", status, text),
		Next: "change the question, or research it elsewhere and paste the text"}
}

var regainPattern = regexp.MustCompile(`regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC`)

// regained returns the end of a limit, or the zero time if it is unknown.
func regained(text string) time.Time {
	var at time.Time
	if m := regainPattern.FindStringSubmatch(text); m != nil {
		at, _ = time.Parse("2006-01-02 15:04", m[1]+" "+m[2]) // zero if the text is not a date
	}
	return at
}

const longestRetryAfter = 31 * 24 * time.Hour

// retryAfter returns the wait that a response asks for, in seconds or until a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	var wait time.Duration
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 {
		wait = time.Duration(min(seconds, longestRetryAfter.Seconds()) * float64(time.Second))
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return max(0, min(wait, longestRetryAfter))
}

const quotable = 300

// quote makes foreign text fit for an error: short, on one line, and without the key.
func (c *Client) quote(text string) string {
	text = strings.ReplaceAll(text, c.options.APIKey, "…")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar
	}), " ")
	if runes := []rune(text); len(runes) > quotable {
		text = string(runes[:quotable]) + "…"
	}
	return text
}
