package research

import (
	"fmt"
	"strings"

	"lockkeeper/internal/agent"
)

// paste is the hint if the API gave no usable answer.
const paste = "ask again, or research it elsewhere and paste the text"

// answer reads a message. An incomplete answer is an error.
func (c *Client) answer(res agent.Result, m message) (agent.Result, error) {
	var text strings.Builder
	for _, block := range m.Content {
		if block.Type == "text" {
			text.WriteString(block.Text)
		}
	}
	res.Text = strings.TrimSpace(text.String())
	if m.Model != "" {
		res.Model = m.Model
	}
	res.Usage = agent.Usage{Input: m.Usage.Input, Output: m.Usage.Output,
		CacheRead: m.Usage.CacheRead, CacheWrite: m.Usage.CacheWrite}
	unfinished := func(reason, next string) (agent.Result, error) {
		return res, &agent.UnfinishedError{Origin: c.origin(), Reason: reason, Next: next}
	}
	switch m.StopReason {
	case "refusal":
		reason := "the model declined to answer"
		if why := c.quote(m.StopDetails.Explanation); why != "" {
			reason += ": " + why
		}
		return unfinished(reason, "word the topic in another way, or research it elsewhere and paste the text")
	case "max_tokens":
		return unfinished(fmt.Sprintf("the answer was cut off after %d tokens, its limit", m.Usage.Output), "permit more tokens, or ask for less at once")
	case "model_context_window_exceeded":
		return unfinished("the answer was cut off at the end of the model's context window", "ask for less at once")
	case "end_turn", "stop_sequence":
	default:
		return unfinished(fmt.Sprintf("the answer ended for the reason %q", c.quote(m.StopReason)), paste)
	}
	if res.Text == "" {
		return unfinished("the answer is empty", paste)
	}
	return res, nil
}
