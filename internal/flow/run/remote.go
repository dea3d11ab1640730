package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/supervisor"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/git/parcel"
	"lockkeeper/sched"
)

// Files of a parcel, in addition to its trees. The other files of a result are those of the call's folder.
const (
	requestFile = "request.json"
	replyFile   = "reply.json"
)

// Limits of a result.
const (
	maxRequest = 64 << 20
	maxEdits   = 2_000
	maxOutput  = 256 << 20 // bytes of one file
	everyEdit  = 1_000_000 // more than any tree has: no limit for trees that are not results
)

// A request is what a machine needs to know about a call, in addition to the tree.
type request struct {
	Item    string               `json:"item"`
	Dir     string               `json:"dir"` // the workspace on the conductor, for prompts that name it
	Grant   supervisor.GrantView `json:"grant"`
	Targets []string             `json:"targets"` // files that may change
	Without []string             `json:"without"` // directories of the pipeline, which no workspace has

	Agent      string        `json:"agent,omitempty"` // empty: a check command
	Default    bool          `json:"default,omitempty"`
	Prompt     string        `json:"prompt,omitempty"`
	Form       string        `json:"form,omitempty"`
	Model      string        `json:"model,omitempty"`
	Args       []string      `json:"args,omitempty"`
	MaxUSD     float64       `json:"max_usd,omitempty"`
	Timeout    time.Duration `json:"timeout"`
	StallAfter time.Duration `json:"stall_after,omitempty"`

	Command string `json:"command,omitempty"` // a check command
}

// A reply is what a machine says about a call, in addition to its changes.
type reply struct {
	Dir     string        `json:"dir"` // the workspace there, for outputs that name it
	Took    time.Duration `json:"took"`
	Exit    int           `json:"exit"`
	TooLong bool          `json:"timed_out,omitempty"`
	Failure string        `json:"failure,omitempty"` // why the agent's call failed, if its output does not say
	Kind    agent.Kind    `json:"kind,omitempty"`
	Asked   []askedFor    `json:"asked,omitempty"` // files that the agent asked for
	Left    []askedFor    `json:"left,omitempty"`  // changes that are not in the parcel
}

type askedFor struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// offer ships a workspace with a request, and puts the call into the queue of all machines.
func (c *crew) offer(ctx context.Context, t execution, w *workspace.Workspace, wanted wantedCall, r request) (*fleet.Call, error) {
	view, err := (&agentRequests{p: c.p, t: t}).Grant(ctx)
	if err != nil {
		return nil, err
	}
	r.Item, r.Dir, r.Grant, r.Without, r.Targets = t.ID(), w.Dir(), view, c.p.opt.Own, view.Write
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, parcelTimeout)
	defer cancel()
	call := &fleet.Call{ID: fleet.NewCallID(), Run: c.p.opt.Run, Item: t.ID(), Purpose: wanted.purpose, Work: wanted.working.Work, Phase: wanted.working.Phase, Need: wanted.need}
	if call.Base, err = c.pack(ctx, w, "call "+call.ID+" of "+call.Work, map[string][]byte{requestFile: text}); err != nil {
		return nil, err
	}
	c.mine.Store(call.ID, true)
	// The call is dispatched only if its base is reachable.
	if err := c.Parcels.Push(ctx, c.Remote, call.Base, c.Ref("base", call.ID)); err != nil {
		return nil, err
	}
	return call, c.Fleet.Offer(ctx, call)
}

// A hostileError reports a result that no honest machine sends.
type hostileError struct{ reason string }

func (e *hostileError) Error() string { return "the result of another machine is refused: " + e.reason }

// fetch reads the result of a call, and makes its changes in the workspace as if they had been made
// there.
func (c *crew) fetch(ctx context.Context, t execution, q question, w *workspace.Workspace, call *fleet.Call) (r reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, parcelTimeout)
	defer cancel()
	if err := c.Parcels.Fetch(ctx, c.Remote, c.resultRef(call), call.Result); err != nil {
		return r, err
	}
	edits, err := c.editsOf(ctx, w, call)
	if err != nil {
		return r, err
	}
	text, err := c.Parcels.File(ctx, call.Result, replyFile, maxRequest)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, &hostileError{"its reply cannot be read: " + err.Error()}
	}
	for _, e := range edits {
		if err := c.apply(ctx, w, e); err != nil {
			return r, fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	requests := &agentRequests{p: c.p, t: t, q: q}
	for _, asked := range r.Asked[:min(len(r.Asked), maxAsked)] {
		if err := requests.Gap(ctx, asked.Path, asked.Reason); err != nil {
			return r, err
		}
	}
	c.noteLeft(t, call, r.Left)
	return r, nil
}

// maxAsked is how many files an agent can ask for.
const maxAsked = 20

// editsOf lists the changes of a result. It refuses those that no honest machine sends.
func (c *crew) editsOf(ctx context.Context, w *workspace.Workspace, call *fleet.Call) ([]parcel.Edited, error) {
	_, sent, err := c.Parcels.Trees(ctx, call.Base)
	if err != nil {
		// Another conductor sent it.
		if err = c.Parcels.Fetch(ctx, c.Remote, c.Ref("base", call.ID), call.Base); err == nil {
			_, sent, err = c.Parcels.Trees(ctx, call.Base)
		}
		if err != nil {
			return nil, err
		}
	}
	_, tree, err := c.Parcels.Trees(ctx, call.Result)
	if err != nil {
		return nil, &hostileError{"it has no tree"}
	}
	edits, err := c.Parcels.Edits(ctx, sent, tree, maxEdits)
	if err != nil {
		return nil, &hostileError{err.Error()}
	}
	for _, e := range edits {
		if err := parcel.Check(e.Path); err != nil {
			return nil, &hostileError{err.Error()}
		}
		if e.Now != parcel.ModeNone && e.Now != parcel.ModeFile && e.Now != parcel.ModeExec {
			return nil, &hostileError{fmt.Sprintf("%q has the mode %s, but only files can land", e.Path, e.Now)}
		}
	}
	if err := c.checkBase(ctx, w, sent, edits); err != nil {
		return nil, err
	}
	// Deleted files come first, because a new directory can have the name of one.
	slices.SortStableFunc(edits, func(a, b parcel.Edited) int {
		switch goesA, goesB := a.Now == parcel.ModeNone, b.Now == parcel.ModeNone; {
		case goesA && !goesB:
			return -1
		case !goesA && goesB:
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	return edits, nil
}

// checkBase refuses changes of files that differ between the tree that was sent and the workspace. An
// earlier conductor may have sent the call.
func (c *crew) checkBase(ctx context.Context, w *workspace.Workspace, sent string, edits []parcel.Edited) error {
	if len(edits) == 0 {
		return nil
	}
	now, err := c.pack(ctx, w, "compare", nil)
	if err != nil {
		return err
	}
	_, tree, err := c.Parcels.Trees(ctx, now)
	if err != nil || tree == sent {
		return err
	}
	differ, err := c.Parcels.Edits(ctx, sent, tree, everyEdit)
	if err != nil {
		return err
	}
	for _, e := range edits {
		if slices.ContainsFunc(differ, func(d parcel.Edited) bool { return d.Path == e.Path }) {
			return &lockkeeper.MovedError{Path: e.Path}
		}
	}
	return nil
}

// apply makes one change in a workspace.
func (c *crew) apply(ctx context.Context, w *workspace.Workspace, e parcel.Edited) error {
	if e.Now == parcel.ModeNone {
		return w.Delete(ctx, e.Path)
	}
	body, err := c.Parcels.Blob(ctx, e.ID, maxOutput)
	if err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if was, err := stateIn(w, e.Path); err != nil {
		return err
	} else if was != nil && was.Mode.IsRegular() {
		mode = was.Mode.Perm() &^ 0o111 // git knows only whether a file can be executed
	}
	if e.Now == parcel.ModeExec {
		mode |= mode & 0o444 >> 2
	}
	return w.Put(ctx, e.Path, mode, bytes.NewReader(body))
}

// fetchFiles stores the files of a result in the folder of its call.
func (c *crew) fetchFiles(ctx context.Context, call *fleet.Call, tr trace) error {
	names, err := c.Parcels.Files(ctx, call.Result)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case name == replyFile:
			continue
		case name != filepath.Base(name) || strings.HasPrefix(name, ".") || slices.Contains([]string{callFile, itemFile, workspaceFile, askedFile}, name):
			return &hostileError{fmt.Sprintf("it has a file %q", name)}
		}
		text, err := c.Parcels.File(ctx, call.Result, name, maxOutput)
		if err != nil {
			return &hostileError{err.Error()}
		}
		f, err := os.OpenFile(filepath.Join(tr.dir, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// noteLeft turns changes that stayed on another machine into gaps.
func (c *crew) noteLeft(t execution, call *fleet.Call, left []askedFor) {
	p := c.p
	for _, l := range left[:min(len(left), maxAsked)] {
		text := "it stayed on the machine " + call.Name + ": " + l.Reason
		p.tell(News{Kind: NewsGap, Item: t.ID(), Text: l.Path + ": " + text})
		p.mu.Lock()
		p.requested[t.ID()] = append(p.requested[t.ID()], flow.Gap{Path: l.Path, Reason: text, At: time.Now().UTC()})
		p.mu.Unlock()
	}
}

// needOf returns what a call of a phase needs of a machine.
func (c *crew) needOf(phase, pool, agentName string) fleet.Need {
	n := fleet.Need{Pool: pool, Labels: c.Needs[phase]}
	if pool == fleet.AgentPool {
		n.Agent = agentName
	}
	return n
}

// callSomewhere calls an agent on the machine that is the least busy one. If that is another one,
// callSomewhere also returns its call, which stays until the result is stored.
func (p *Pipeline) callSomewhere(ctx context.Context, t execution, q question, w *workspace.Workspace, adapter agent.Adapter, r agent.Request, tr trace, o agent.Options) (res agent.Result, from *fleet.Call, err error) {
	c := p.crew
	if c == nil {
		res, err = agent.Call(ctx, adapter, r, tr.files(), o)
		return res, nil, err
	}
	wanted := wantedCall{need: c.needOf(q.phase, fleet.AgentPool, adapter.Name()), purpose: q.purpose,
		working: fleet.Working{Work: workName(q.unit, q.batch), Phase: q.phase, Pool: fleet.AgentPool}}
	wanted.offer = func(ctx context.Context) (*fleet.Call, error) {
		return c.offer(ctx, t, w, wanted, request{Agent: adapter.Name(), Default: q.agent == "" || q.agent == p.opt.Agents.Default, Prompt: r.Prompt, Form: q.form,
			Model: r.Model, Args: r.Extra, MaxUSD: r.MaxUSD, Timeout: o.Timeout, StallAfter: o.StallAfter})
	}
	at, err := c.place(ctx, wanted)
	if err != nil {
		return res, nil, err
	}
	if at.call == nil {
		defer at.done()
		res, err = agent.Call(ctx, adapter, r, tr.files(), o)
		return res, nil, err
	}
	said, err := c.fetch(ctx, t, q, w, at.call)
	if err == nil {
		err = c.fetchFiles(ctx, at.call, tr)
	}
	if err != nil {
		return res, nil, c.discard(ctx, at.call, err)
	}
	p.news(NewsRun, q, "ended on "+at.call.Name+" after "+said.Took.Round(time.Second).String())
	res, finished, err := agent.Completed(adapter, tr.files(), r.Schema)
	if res.Duration == 0 {
		res.Duration = said.Took
	}
	if err == nil && !finished {
		if said.Failure == "" {
			said.Kind, said.Failure = agent.Crashed, "the machine "+at.call.Name+" sent no answer of the agent"
		}
		err = &agent.Error{Origin: agent.Origin{Agent: adapter.Name(), Session: res.Session, Output: tr.files().Output}, Kind: said.Kind, Reason: said.Failure}
	}
	c.mu.Lock()
	c.spent += agent.CostOf(res, err).MicroUSD
	c.mu.Unlock()
	if err != nil {
		return res, nil, c.discard(ctx, at.call, err)
	}
	return res, at.call, nil
}

// discard removes a call whose result is of no use. If ctx has ended, the next run uses the result.
func (c *crew) discard(ctx context.Context, call *fleet.Call, why error) error {
	if ctx.Err() != nil {
		return why
	}
	return errors.Join(why, c.remove(ctx, call))
}

// executeSomewhere runs a check command of a batch on the machine that is the least busy one. The
// changes that it made are in the workspace.
func (l *batchRun) executeSomewhere(ctx context.Context, phase, command string, out *os.File, begin func() error) (_ executed, err error) {
	p, c, limit := l.p, l.p.crew, l.p.opt.Limits.CheckTimeout
	if c == nil {
		return p.execute(ctx, l.t, site{w: l.w}, command, limit, out, func() (func() error, error) { return l.takeTestSlot(ctx, phase, begin) })
	}
	if err := l.t.Phase(ctx, phase, sched.PoolTest); err != nil {
		return executed{}, err
	}
	defer func() { err = errors.Join(err, l.t.ReturnSlots(context.WithoutCancel(ctx))) }()
	if err := begin(); err != nil {
		return executed{}, err
	}
	wanted := wantedCall{need: c.needOf(phase, fleet.TestPool, ""), working: fleet.Working{Work: workName(l.unit.Name, l.batch.ID), Phase: phase, Pool: fleet.TestPool}}
	wanted.offer = func(ctx context.Context) (*fleet.Call, error) {
		return c.offer(ctx, l.t, l.w, wanted, request{Command: command, Timeout: limit})
	}
	at, err := c.place(ctx, wanted)
	if err != nil {
		return executed{}, err
	}
	if at.call == nil {
		defer at.done()
		return p.executeNumbered(ctx, numbered{l.t, at.slot}, l.w, command, limit, out)
	}
	said, err := c.fetch(ctx, l.t, l.ask(phase, ""), l.w, at.call)
	if err != nil {
		return executed{}, c.discard(ctx, at.call, err)
	}
	text, err := c.Parcels.File(ctx, at.call.Result, outputFile, maxOutput)
	if err == nil {
		_, err = out.Write(bytes.ReplaceAll(text, []byte(said.Dir), []byte(l.w.Dir())))
	}
	p.news(NewsRun, l.ask(phase, ""), "ran on "+at.call.Name+" in "+said.Took.Round(100*time.Millisecond).String())
	return executed{exit: said.Exit, took: said.Took, tooLong: said.TooLong}, errors.Join(err, c.remove(ctx, at.call))
}

func workName(unit, batch string) string { return Work{Unit: unit, Part: batch}.Name() }

// A numbered execution has a slot number of this machine, because those of the queue count the slots
// of all machines.
type numbered struct {
	execution
	slot int
}

func (n numbered) Slot() int { return n.slot }
