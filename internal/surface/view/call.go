package view

import (
	"context"
	"fmt"
	"os"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
)

// Call is a call of an agent for an item.
type Call struct {
	run.PastCall
	Number int  `json:"number"`         // counts the calls of the item from 1
	Open   bool `json:"open,omitempty"` // the end of the call is not recorded: the call runs, or its process died

	Running bool `json:"running,omitempty"` // the call is open, and its item runs
}

func callOf(flowName string, number int, e run.CallRecord) Call {
	if e.Call != nil {
		return Call{PastCall: *e.Call, Number: number}
	}
	return Call{PastCall: run.PastCall{Call: flow.Call{Phase: e.Phase, Began: e.Began}, Flow: flowName, Unit: e.Work}, Number: number, Open: true}
}

// CallDetail is a call with what was sent to the agent and what it printed.
type CallDetail struct {
	Call
	Item    string `json:"item"`
	Name    string `json:"name"` // name of the item
	Prompt  *Log   `json:"prompt,omitempty"`
	Answer  string `json:"answer,omitempty"` // the result, without the agent's protocol
	Output  *Log   `json:"output,omitempty"` // everything that the agent printed
	Log     *Log   `json:"log,omitempty"`    // the end of what the agent said, for people; it grows while the call runs
	Command string `json:"command"`          // prints the whole prompt in a terminal
}

// callText limits the bytes of a prompt or an output that are shown at once.
const callText = 1 << 20

// Call returns one call of an item, which people count from 1. Number 0 means the last call.
func (rd *Reader) Call(ctx context.Context, name string, number int) (*CallDetail, error) {
	_, it, err := rd.find(ctx, name)
	if err != nil {
		return nil, err
	}
	e, number, err := conduct.AgentCall(rd.project, rd.journal, it, number)
	if err != nil {
		return nil, err
	}
	d := &CallDetail{Call: callOf(run.FlowOf(it), number, e), Item: it.ID, Name: ItemName(it), Command: fmt.Sprintf("lockkeeper job output %s --prompt --call %d", it.ID, number)}
	if d.Prompt, err = wholeLog(e.Files().Prompt()); err != nil {
		return nil, err
	}
	d.Running = d.Open && it.IsHolding()
	if d.Log, err = callLog(e); err != nil {
		return nil, err
	}
	if d.Output, err = wholeLog(e.Files().Output); err != nil || d.Output == nil || e.Call == nil {
		return d, err
	}
	adapter, err := agent.ByName(e.Call.Agent, rd.commandOf(e.Call.Agent)...)
	if err != nil { // no agent program made the call, or this version does not know it
		d.Answer, d.Output = d.Output.Text, nil
		return d, nil
	}
	d.Answer, err = e.Answer(adapter)
	return d, err
}

// callLog reads the end of what the agent of a call said. It returns nil if it said nothing yet.
func callLog(e run.CallRecord) (*Log, error) {
	path, _, err := e.Said()
	if err != nil || path == "" {
		return nil, ignoreMissing(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	return readLog(f, tailFrom, logTail)
}

// commandOf returns the configured command of an agent.
func (rd *Reader) commandOf(name string) []string {
	if c := rd.project.Config.Agent; name == c.Name {
		return c.Command
	}
	return nil
}

// wholeLog reads a file of a call from its beginning. It returns nil if the file is missing.
func wholeLog(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	return readLog(f, 0, callText)
}
