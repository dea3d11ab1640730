package run_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/scriptedapi"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/research"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/machinetest"
)

// A topic goes to the Messages API if a person chose that, and stays pending if the call fails. A
// pasted answer works, too. No other controller waits for the topic.
//
// shows: PL-13 PL-14 PL-15 PL-68 PL-84
func TestResearch(t *testing.T) {
	s := newScene(t, "SQLite", "controllers")
	api := scriptedapi.Start(t,
		scriptedapi.Play{Prompt: "pagination", Times: 1, Steps: []scriptedapi.Step{{Fail: &scriptedapi.Fail{Status: 400, Type: "invalid_request_error", Message: "not today"}}}},
		scriptedapi.Play{Prompt: "pagination", Steps: []scriptedapi.Step{{Text: "They use keyset pagination."}}})
	client, err := research.New(research.Options{APIKey: "sk-test", BaseURL: api.URL})
	must(t, err)
	s.opt.Research = client
	auto, err := progress.ParsePolicy("impact>=medium")
	must(t, err)
	again := func(retry bool) *run.Outcome {
		return s.conduct(request{Auto: &auto, Retry: retry})
	}
	out := again(false)
	const unit = "blog/posts"
	if out.Complete != 3 || len(out.Waiting) == 0 || out.Waiting[0].Ref.Kind != progress.TopicKind {
		t.Fatalf("%d complete, waiting %+v", out.Complete, out.Waiting)
	}
	slug := out.Waiting[0].Ref.Topic
	must(t, s.opt.Progress.ChooseAPI(t.Context(), unit, slug, "ada"))
	if out = again(false); out.Complete != 3 || len(s.news(run.NewsFailed)) != 1 {
		t.Fatalf("%d complete, failed %+v", out.Complete, s.news(run.NewsFailed))
	}
	u, err := s.opt.Progress.Unit(t.Context(), unit)
	must(t, err)
	if u.Status() != "researching" || u.Topics[0].State != progress.Pending {
		t.Errorf("after a failed call: %s, %+v", u.Status(), u.Topics)
	}
	if out = again(true); out.Complete != 4 {
		t.Fatalf("%d complete: %+v", out.Complete, out.State.Units)
	}
	if u, err = s.opt.Progress.Unit(t.Context(), unit); err != nil || u.Topics[0].Text != "They use keyset pagination." || u.Topics[0].Method != "api" {
		t.Errorf("%+v, %v", u.Topics, err)
	}
	for _, entry := range s.opt.Env {
		if strings.Contains(entry, "sk-test") {
			t.Error("the key is in the environment of agents")
		}
	}
}

// A manifest of screens and an API key can be configured together. The screens flow sends no
// request to the API.
//
// shows: CF-33 PL-68 SW-61
func TestManifestAndKey(t *testing.T) {
	s := newScene(t, "memory", "screens")
	api := scriptedapi.Start(t)
	client, err := research.New(research.Options{APIKey: "sk-test", BaseURL: api.URL})
	must(t, err)
	s.opt.Research, s.opt.API = client, true
	if out := s.conduct(request{Only: []string{"blog/posts/Post List"}}); out.Complete != 1 || len(api.Requests()) != 0 {
		t.Errorf("%+v, asked %d times", out.State, len(api.Requests()))
	}
}

// An agent without output is shown as stalled, and a person can stop it.
//
// shows: GP-26
func TestStalled(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.tasks(one)
	s.opt.Agents.StallAfter = 300 * time.Millisecond
	s.play(`
- match: '^# task .*one'
  times: 1
  steps: [{say: I begin.}, {hang: true}]
` + oneScript)
	stopped := make(chan error, 1)
	tell := s.opt.Tell
	var once sync.Once
	s.opt.Tell = func(n run.News) {
		tell(n)
		// On a slow machine the agent is also silent before it begins.
		if n.Kind == run.NewsStalled && strings.Contains(n.Text, "it waited for the model") {
			go once.Do(func() {
				_, err := s.opt.Queue.Cancel(context.Background(), "tasks/+tasks/batch/one@"+flow.Digest(s.opt.Tasks.Batches("ada", time.Now()).Batches[0])[:8], lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}, "it hangs")
				stopped <- err
			})
		}
	}
	out := s.run("all")
	must(t, <-stopped)
	if b := s.batch(out, tasks, "one"); b.Status != flow.Failed || !strings.Contains(b.Error, "it hangs") {
		t.Fatalf("%+v", b)
	}
	auto, err := progress.ParsePolicy("all")
	must(t, err)
	if b := s.batch(s.conduct(request{Auto: &auto, Retry: true}), tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("tried again: %+v", b)
	}
}

// If the disk is full, a phase fails and reports it. The phase runs again when there is room.
//
// shows: GP-26
func TestDiskFull(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	must(t, os.MkdirAll(s.opt.Workspaces, 0o700))
	machinetest.Mount(t, "tmpfs", s.opt.Workspaces, "tmpfs", 0, "size=40k")
	s.tasks(one)
	s.play(oneScript)
	before := s.files()
	out := s.run("all")
	if b := s.batch(out, tasks, "one"); b.Status != flow.Failed || !strings.Contains(b.Error, "no space left") {
		t.Fatalf("%+v", b)
	}
	if after := s.files(); len(after) != len(before) {
		t.Error("the tree changed")
	}
	must(t, syscall.Unmount(s.opt.Workspaces, syscall.MNT_DETACH))
	auto, err := progress.ParsePolicy("all")
	must(t, err)
	if b := s.batch(s.conduct(request{Auto: &auto, Retry: true}), tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("with room: %+v", b)
	}
}

// Tools in a workspace ask their supervisor which files they may write. A request for another
// file becomes a gap and does not widen the grant.
//
// shows: SW-42 PL-44 SW-76
func TestAgentRequests(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.tasks(one)
	exe, err := os.Executable()
	must(t, err)
	s.opt.Agents.Named = func(string) (agent.Adapter, error) {
		return agent.ByName("command", "sh", "-c", `prompt=$(cat); case $prompt in '# verify'*) echo '{"verdict":"pass","report":"fine","issues":[]}';; *) `+exe+` `+requestArgument+` > app/models/one.rb && echo '{"summary":"asked"}';; esac`)
	}
	out := s.run("all")
	if b := s.batch(out, tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("%+v", b)
	}
	text, err := os.ReadFile(filepath.Join(s.root, "app/models/one.rb"))
	must(t, err)
	if string(text) != "[app/models/one.rb]\n" {
		t.Errorf("it may write %s", text)
	}
	if len(out.Waiting) != 1 || out.Waiting[0].Ref.Kind != progress.GapKind {
		t.Errorf("waiting %+v", out.Waiting)
	}
}
