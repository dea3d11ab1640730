package project

import (
	"encoding/json"
	"fmt"
	"strings"

	"lockkeeper"
)

// A Caller describes who uses the tokens of this user. The zero value is a person, who may use
// all of them.
type Caller struct {
	Agent string               // the name of the agent; empty: a person
	Own   lockkeeper.Process   // the process of the agent
	Above []lockkeeper.Process // the ancestors of this process: an agent that another one started may use the tokens of both
}

// seal returns the content of a token file: the token, and for an agent its process in a second
// line.
func (c Caller) seal(token string) ([]byte, error) {
	if c.Agent == "" {
		return []byte(token), nil
	}
	own, err := json.Marshal(c.Own)
	return fmt.Appendf(nil, "%s\n%s", token, own), err
}

// open returns a sealed token if this caller may use it.
func (c Caller) open(grant string, text []byte) (string, error) {
	token, own, agents := strings.Cut(string(text), "\n")
	if c.Agent == "" {
		return token, nil
	}
	refused := &lockkeeper.RefusedError{Act: "using grant " + grant,
		Reason: "this runs inside an agent (" + c.Agent + "), which uses only what it has acquired itself with lockkeeper lock acquire, and this was acquired by a person, or for a session",
		Next:   "claims of your session are released at the end of its turn; for other grants ask the holder: lockkeeper status"}
	if !agents {
		return "", refused
	}
	var by lockkeeper.Process
	if err := json.Unmarshal([]byte(own), &by); err != nil {
		return "", fmt.Errorf("the token of grant %s: whose it is cannot be read: %w", grant, err)
	}
	for _, p := range append(c.Above, c.Own) {
		if p == by {
			return token, nil
		}
	}
	refused.Reason = fmt.Sprintf("this runs inside an agent (%s), which uses only what it has acquired itself, and this was acquired by another one, process %d", c.Agent, by.PID)
	return "", refused
}
