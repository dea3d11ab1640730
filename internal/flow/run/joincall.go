package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/git/parcel"
)

// do carries out a call and returns the commit with its result, which is at the remote.
func (j *Joiner) do(ctx context.Context, call *fleet.Call, slot int) (commit string, err error) {
	if err := j.c.Parcels.Fetch(ctx, j.c.Remote, j.c.Ref("base", call.ID), call.Base); err != nil {
		return "", err
	}
	text, err := j.c.Parcels.File(ctx, call.Base, requestFile, maxRequest)
	if err != nil {
		return "", err
	}
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		return "", fmt.Errorf("read the request of %s: %w", call.Work, err)
	}
	w, sent, err := j.workspace(ctx, call)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx), false)) }()
	tr, err := j.p.ledger.begin(call.Purpose+"/"+call.ID, w.Home(), call.Item, time.Time{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tr.dir)) }() // the result has it
	t := &guest{id: r.Item, call: call.ID, pool: call.Need.Pool, slot: slot, view: r.Grant}
	said, err := j.work(ctx, t, w, r, tr)
	if err != nil {
		return "", err
	}
	return j.pack(ctx, call, w, sent, r, said, tr)
}

// workspace makes a workspace with exactly the tree that was sent. It also returns the paths at which
// that differs from the files of the checkout.
func (j *Joiner) workspace(ctx context.Context, call *fleet.Call) (w *workspace.Workspace, sent []parcel.Edited, err error) {
	base, tree, err := j.c.Parcels.Trees(ctx, call.Base)
	if err != nil {
		return nil, nil, err
	}
	if sent, err = j.c.Parcels.Edits(ctx, base, tree, everyEdit); err != nil {
		return nil, nil, err
	}
	if w, err = j.enter(ctx, call, base); err != nil {
		return nil, nil, err
	}
	for _, e := range sent {
		if e.Now != parcel.ModeNone {
			continue
		}
		if err := w.Delete(ctx, e.Path); err != nil {
			return nil, nil, errors.Join(err, w.Close(ctx, false))
		}
	}
	for _, e := range sent {
		if e.Now == parcel.ModeNone {
			continue
		}
		body, err := j.c.Parcels.Blob(ctx, e.ID, maxOutput)
		if err == nil {
			mode := os.FileMode(0o644)
			if e.Now == parcel.ModeExec {
				mode = 0o755
			}
			err = w.Put(ctx, e.Path, mode, strings.NewReader(string(body)))
		}
		if err != nil {
			return nil, nil, errors.Join(err, w.Close(ctx, false))
		}
	}
	return w, sent, nil
}

// enter makes a workspace of the tree of a call.
func (j *Joiner) enter(ctx context.Context, call *fleet.Call, base string) (*workspace.Workspace, error) {
	j.entering.Lock()
	defer j.entering.Unlock()
	var fresh []string // a large tree is not compared as a whole each time
	if j.entered != "" {
		differ, err := j.c.Parcels.Edits(ctx, j.entered, base, everyEdit)
		if err != nil {
			return nil, err
		}
		for _, e := range differ {
			fresh = append(fresh, e.Path)
		}
	}
	j.entered = ""
	if err := j.checkout.Enter(ctx, call.Base); err != nil {
		return nil, err
	}
	w, err := j.p.makeWorkspace(ctx, fresh)
	if err == nil {
		j.entered = base
	}
	return w, err
}

// work runs the agent or the command of a call.
func (j *Joiner) work(ctx context.Context, t *guest, w *workspace.Workspace, r request, tr trace) (said reply, err error) {
	began := time.Now()
	defer func() {
		said.Dir, said.Took = w.Dir(), time.Since(began)
		t.mu.Lock()
		said.Asked = t.asked
		t.mu.Unlock()
	}()
	if r.Agent == "" {
		return j.check(ctx, t, w, r, tr)
	}
	adapter, err := j.p.opt.Agents.Named(r.Agent)
	if err != nil {
		return said, err
	}
	ready, err := j.p.prepare(ctx, t, site{w: w, agent: adapter.Name()})
	if err != nil {
		return said, err
	}
	defer func() { err = errors.Join(err, ready.close()) }()
	most, done, err := j.share(ctx, adapter, r.MaxUSD)
	if err != nil {
		return said, err
	}
	defer done()
	log := tr.livelog()
	ask := agent.Request{Prompt: strings.ReplaceAll(r.Prompt, r.Dir, w.Dir()), Dir: w.Dir(), Env: j.p.agentEnv(t, w), Permission: agent.PermitAll,
		Schema: flow.AnswerSchema(r.Form), MaxUSD: most, Model: r.Model, Extra: r.Args}
	res, failure := agent.Call(ctx, adapter, ask, tr.files(), agent.Options{
		Run: func(ctx context.Context, c agent.Command) (agent.Exit, error) {
			return ready.runAgent(ctx, c)
		},
		Timeout: r.Timeout, StallAfter: r.StallAfter, Tell: log.tell,
	})
	if err := log.close(); err != nil {
		return said, err
	}
	cost, _ := j.p.ledger.count(res, failure)
	j.mu.Lock()
	j.self.MicroUSD += cost.MicroUSD
	j.mu.Unlock()
	if err := j.p.ledger.start(); err != nil {
		j.tell("no further agent starts here: " + err.Error())
		j.wake()
	}
	if ctx.Err() != nil {
		return said, context.Cause(ctx)
	}
	if limit, ok := errors.AsType[*agent.Error](failure); ok && limit.Kind == agent.Limit { // another account may continue
		j.limited(limit)
		return said, failure
	}
	if agent.KindOf(failure) == agent.Unfinished && most > r.MaxUSD && res.CostUSD >= most { // another machine may spend more
		return said, &shareError{most, failure}
	}
	if failure != nil {
		said.Failure, said.Kind = failure.Error(), agent.KindOf(failure)
	}
	return said, nil
}

// share reserves the cost of a call in the budget of this machine until done is called. It returns what the call may
// cost at most; 0: there is no limit. A call that may cost more than is left is for another machine.
func (j *Joiner) share(ctx context.Context, a agent.Adapter, asked float64) (most float64, done func(), err error) {
	if named, _ := program.ByName(a.Name()); !named.LimitsCost {
		return asked, func() {}, j.p.ledger.start()
	}
	usd, err := j.p.ledger.reserve(ctx, j.p.opt.Limits.Agents)
	if err != nil {
		return 0, nil, err
	}
	done = func() { j.p.ledger.release(usd) }
	if usd > 0 && asked > usd {
		done()
		return 0, nil, fmt.Errorf("it may cost $%.2f, and $%.2f are left for it on this machine", asked, usd)
	}
	return cmp.Or(asked, usd), done, nil
}

// limited pauses the agents of this machine until a rate limit has passed.
func (j *Joiner) limited(limit *agent.Error) {
	until := limit.ResetAt
	if until.IsZero() {
		until = time.Now().Add(j.p.opt.Limits.LimitPause)
	}
	j.mu.Lock()
	j.until = until
	j.mu.Unlock()
	j.tell(fmt.Sprintf("no agent starts here until %s: %s", until.Local().Format("15:04:05"), limit.Error()))
	j.wake()
}

// check runs a check command.
func (j *Joiner) check(ctx context.Context, t *guest, w *workspace.Workspace, r request, tr trace) (said reply, err error) {
	out, err := os.OpenFile(tr.files().Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return said, err
	}
	ran, err := j.p.executeNumbered(ctx, t, w, r.Command, r.Timeout, out)
	if err = errors.Join(err, out.Close()); err != nil {
		return said, err
	}
	said.Exit, said.TooLong = ran.exit, ran.tooLong
	text, err := os.ReadFile(tr.files().Output)
	if err == nil { // the sandbox shows the workspace at another path
		err = os.WriteFile(tr.files().Output, []byte(fromWorkspace(string(text), w)), 0o600)
	}
	return said, err
}

// pack sends the result of a call: its changes, the files of its folder, and the reply.
func (j *Joiner) pack(ctx context.Context, call *fleet.Call, w *workspace.Workspace, sent []parcel.Edited, r request, said reply, tr trace) (commit string, err error) {
	base, tree, err := j.c.Parcels.Trees(ctx, call.Base)
	if err != nil {
		return "", err
	}
	p := parcel.Parcel{Base: base, From: tree, Parents: []string{call.Base}, Subject: "result of call " + call.ID + " of " + call.Work, Files: map[string][]byte{}}
	if p.Edits, said.Left, err = j.edits(ctx, w, sent, r); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(tr.dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || slices.Contains([]string{callFile, itemFile, workspaceFile, askedFile}, e.Name()) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if p.Files[e.Name()], err = os.ReadFile(filepath.Join(tr.dir, e.Name())); err != nil {
			return "", err
		}
	}
	if p.Files[replyFile], err = json.Marshal(said); err != nil {
		return "", err
	}
	if commit, err = j.c.Parcels.Pack(ctx, p); err != nil {
		return "", err
	}
	return commit, j.c.Parcels.Push(ctx, j.c.Remote, commit, j.c.resultRef(call))
}

// edits lists the files that differ from the tree that was sent, and the changes that cannot be sent.
func (j *Joiner) edits(ctx context.Context, w *workspace.Workspace, sent []parcel.Edited, r request) (edits []parcel.Edit, left []askedFor, err error) {
	changes, err := w.Survey(ctx, r.Targets)
	if err != nil {
		return nil, nil, err
	}
	ignored, err := w.Ignored(ctx, changes)
	if err != nil {
		return nil, nil, err
	}
	differs := map[string]bool{}
	for i, c := range changes {
		differs[c.Path] = true
		target := slices.Contains(r.Targets, c.Path)
		why := ""
		switch {
		case ignored[i] && !target:
			continue
		case parcel.Check(c.Path) != nil:
			why = parcel.Check(c.Path).Error()
		case c.Whole:
			why = fmt.Sprintf("a new directory with %d files", c.Files)
		case c.Now != nil && c.Now.Mode.IsDir():
			continue // it exists with its files
		case c.Now != nil && !c.Now.Mode.IsRegular():
			why = "it became " + c.Now.String()
		case c.Now != nil && c.Now.Size > maxOutput:
			why = fmt.Sprintf("it has %d MB", c.Now.Size>>20)
		case len(edits) == maxEdits && !target:
			why = fmt.Sprintf("the call changed more than %d files", maxEdits)
		}
		if why != "" {
			left = append(left, askedFor{c.Path, why})
			continue
		}
		edits = append(edits, editOf(w, c.Path, c.Now))
	}
	for _, e := range sent { // files that are again as in the checkout
		if differs[e.Path] {
			continue
		}
		now, err := stateIn(w, e.Path)
		if err != nil {
			return nil, nil, err
		}
		edits = append(edits, editOf(w, e.Path, now))
	}
	return edits, left, nil
}
