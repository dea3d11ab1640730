package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/git/parcel"
	"lockkeeper/store/sqlstore"
)

// machine DIR MACHINE ACT… acts as another machine in the clone DIR, by the protocol and not by the
// program. It has all labels that tests use. The acts:
//
//	claim        claims the next queued call, and does not renew the claim
//	result KIND  finishes the claimed call, which must be accepted: see resultOf
//	late         finishes the claimed call, which must be refused
//	stay         takes part, and claims nothing, until a run ends
func machine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: machine DIR MACHINE ACT…")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir := ts.MkAbs(args[0])
	text, err := os.ReadFile(filepath.Join(dir, ".lockkeeper", "space.json"))
	ts.Check(err)
	var marker struct {
		Space string `json:"space"`
	}
	ts.Check(json.Unmarshal(text, &marker))
	st, err := sqlstore.OpenPostgres(ctx, ts.Getenv("LOCKKEEPER_STORE"), marker.Space, sqlstore.Options{})
	ts.Check(err)
	defer st.Close()
	f := fleet.Open(st)
	env := append(os.Environ(), "GIT_CONFIG_GLOBAL="+ts.Getenv("GIT_CONFIG_GLOBAL"))
	repo, err := parcel.Open(ctx, dir, ts.MkAbs("../index-"+args[1]), env)
	ts.Check(err)
	ref := func(kind, name string) string { return "refs/lockkeeper/" + marker.Space + "/" + kind + "/" + name }
	kept := ts.MkAbs("../claim-" + args[1])
	m := &fleet.Machine{ID: args[1], Name: args[1], Began: time.Now(), Agents: 1, Labels: []string{"far"}}
	switch args[2] {
	case "claim":
		for {
			ts.Check(f.Announce(ctx, m))
			calls, err := f.Calls(ctx)
			ts.Check(err)
			at := slices.IndexFunc(calls, func(c fleet.Call) bool { return c.State == fleet.Queued })
			if at < 0 {
				select {
				case <-time.After(100 * time.Millisecond):
					continue
				case <-ctx.Done():
					ts.Fatalf("no call was offered")
				}
			}
			mine, err := f.Claim(ctx, &calls[at], m)
			ts.Check(err)
			if !mine {
				continue
			}
			ts.Check(f.Leave(ctx, m)) // it takes no further call
			text, err := json.Marshal(calls[at])
			ts.Check(err)
			ts.Check(os.WriteFile(kept, text, 0o600))
			return
		}
	case "stay":
		for {
			ts.Check(f.Announce(ctx, m))
			r, err := f.Run(ctx)
			ts.Check(err)
			if r != nil && r.Ended.After(m.Began) {
				ts.Check(f.Leave(ctx, m))
				return
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				ts.Fatalf("the run did not end")
			}
		}
	case "result", "late":
		text, err := os.ReadFile(kept)
		ts.Check(err)
		var claimed fleet.Call
		ts.Check(json.Unmarshal(text, &claimed))
		ts.Check(repo.Fetch(ctx, "origin", ref("base", claimed.ID), claimed.Base))
		kind := "honest"
		if len(args) > 3 {
			kind = args[3]
		}
		commit := resultOf(ctx, ts, repo, dir, env, &claimed, kind)
		ts.Check(repo.Push(ctx, "origin", commit, ref("result", fmt.Sprintf("%s/%d", claimed.ID, claimed.Fence))))
		accepted, err := f.Finish(ctx, &claimed, commit)
		ts.Check(err)
		if accepted != (args[2] == "result") {
			ts.Fatalf("accepted: %v", accepted)
		}
	default:
		ts.Fatalf("unknown act %q", args[2])
	}
}

// resultOf makes the result of a call. The kinds: honest; outside, with a file that is not a target;
// link, with a link; git, with a file of git; log, with a file that replaces the record of the call;
// flood, with many files; other, whose tree is no tree of the parcel.
func resultOf(ctx context.Context, ts *testscript.TestScript, repo *parcel.Repo, dir string, env []string, call *fleet.Call, kind string) string {
	base, tree, err := repo.Trees(ctx, call.Base)
	ts.Check(err)
	put := func(path, text string) parcel.Edit {
		return parcel.Edit{Path: path, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	}
	text, err := repo.File(ctx, call.Base, "request.json", 1<<20)
	ts.Check(err)
	var asked struct{ Targets []string }
	ts.Check(json.Unmarshal(text, &asked))
	files := map[string][]byte{"output": []byte("done\n"), "stderr": nil, "output.exit.json": []byte(`{"code":0,"signal":0,"stopped":false,"ended_at":"2026-01-02T03:04:05Z"}`), "reply.json": []byte(`{"took":1000000000}`)}
	p := parcel.Parcel{Base: base, From: tree, Parents: []string{call.Base}, Subject: "result", Files: files, Edits: []parcel.Edit{put(asked.Targets[0], "by "+kind+"\n")}}
	switch kind {
	case "outside":
		p.Edits = append(p.Edits, put("app/other.txt", "x"), put("lockkeeper.yaml", "x"))
	case "log":
		files["call.json"] = []byte(`{}`)
	case "flood":
		for i := range 2_100 {
			p.Edits = append(p.Edits, put(fmt.Sprintf("app/%d.txt", i), "x"))
		}
	}
	commit, err := repo.Pack(ctx, p)
	ts.Check(err)
	git := func(in string, args ...string) string {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(in), ts.Stderr()
		cmd.Env = append(env, "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x")
		out, err := cmd.Output()
		ts.Check(err)
		return strings.TrimSpace(string(out))
	}
	entry := ""
	switch kind {
	case "link":
		entry = "120000 blob " + git("/etc/passwd", "hash-object", "-w", "--stdin") + "\tpasswd\n"
	case "git":
		blob := git("[core]\nsshCommand = evil\n", "hash-object", "-w", "--stdin")
		entry = "040000 tree " + git("100644 blob "+blob+"\tconfig\n", "mktree") + "\t.git\n"
	default:
		return commit
	}
	hostile := git(git("", "ls-tree", commit+":tree")+"\n"+entry, "mktree")
	rest := ""
	for _, line := range strings.Split(git("", "ls-tree", commit), "\n") {
		if !strings.HasSuffix(line, "\ttree") {
			rest += line + "\n"
		}
	}
	return git("", "commit-tree", "-m", "x", git(rest+"040000 tree "+hostile+"\ttree\n", "mktree"))
}
