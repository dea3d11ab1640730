package scriptedapi

import (
	"net/http"
	"time"
)

// Request is a request that came in, and what of it decides about the answer.
type Request struct {
	At     time.Time
	Method string
	Path   string
	Header http.Header
	Body   []byte

	Model   string
	Stream  bool
	Tools   []string // that the model may use, as Claude Code says
	Prompt  string   // what the user said last
	Results []string // of the tools that were used since, all of the last turn
	Dir     string   // where Claude Code works; empty: it does not say

	answers string // the id of the use of a tool that the results are of
}
