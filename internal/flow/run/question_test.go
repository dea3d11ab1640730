package run_test

import (
	"strings"
	"testing"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// questionScript answers questions only if the prompt has what the agent needs.
const questionScript = `
- match: '(?s)^# question blog/posts/question-1\n.*Who calls it\?.*app/controllers/blog/posts_controller.rb'
  steps: [{write: {path: app/controllers/blog/posts_controller.rb, content: "changed\n"}}]
  result: {structured: {answer: "Only its own pages."}}
- match: '(?s)^# question blog/posts/question-2\n.*Explain this item.*about this item'
  result: {structured: {answer: "It loads every post."}}
- match: '(?s)^# question blog/posts/question-3\n.*Where is it tested\?.*in one line'
  result: {structured: {answer: "Nowhere."}}
`

// A person asks about a unit and about an item. An agent that only reads answers, and no phase
// waits for it. A run of the question alone starts nothing else.
//
// shows: GP-25
func TestQuestions(t *testing.T) {
	const unit = "blog/posts"
	s := newScene(t, "SQLite", "controllers")
	topics, err := progress.ParsePolicy("topics=reject")
	must(t, err)
	out := s.conduct(request{Only: []string{unit}, Auto: &topics})
	if len(out.Waiting) == 0 {
		t.Fatalf("%+v", out.State)
	}
	ask := func(q progress.Question) (id string, err error) {
		q.By = "ada"
		return s.opt.Progress.AskQuestion(t.Context(), unit, q)
	}
	for _, bad := range []progress.Question{{}, {Text: " "}, {Text: "x", Item: "i999"}} {
		if _, err := ask(bad); err == nil {
			t.Errorf("it takes %+v", bad)
		}
	}
	first, err := ask(progress.Question{Text: "Who calls it?"})
	must(t, err)
	before, others := s.files(), s.callsFor("batch_plan")+s.callsFor("extract")
	s.play(questionScript)
	s.conduct(request{Only: []string{unit + "/" + first}})
	u, err := s.opt.Progress.Unit(t.Context(), unit)
	must(t, err)
	if q := u.Questions()[0]; q.Answer != "Only its own pages." || q.AnsweredAt == nil || q.By != "ada" {
		t.Fatalf("%+v, failures %+v", q, s.news(run.NewsFailed))
	}
	if n := s.callsFor("question"); n != 1 || s.callsFor("batch_plan")+s.callsFor("extract") != others {
		t.Errorf("%d calls for the question, and perhaps others", n)
	}
	const file = "app/controllers/blog/posts_controller.rb"
	if now := s.files(); now[file] != before[file] || before[file] == "" {
		t.Errorf("the question changed the code: %q", now[file])
	}
	status := u.Status()

	// The answer is stored once, and the phase of the unit stays.
	must(t, s.opt.Progress.AnswerQuestion(t.Context(), unit, first, "another", nil))
	if u, err = s.opt.Progress.Unit(t.Context(), unit); err != nil || u.Questions()[0].Answer != "Only its own pages." || u.Status() != status {
		t.Errorf("%+v, %s, %v", u.Questions(), u.Status(), err)
	}
	second, err := ask(progress.Question{Item: u.Items[0].ID})
	must(t, err)
	s.conduct(request{Only: []string{unit + "/" + second}})
	if u, err = s.opt.Progress.Unit(t.Context(), unit); err != nil || !strings.HasPrefix(u.Questions()[1].Answer, "It loads") {
		t.Errorf("%+v, %v, failures %+v", u.Questions(), err, s.news(run.NewsFailed))
	}

	// The agent gets the note for its question, and no other agent does.
	third, err := ask(progress.Question{Text: "Where is it tested?"})
	must(t, err, s.opt.Progress.AddNote(t.Context(), unit, progress.Note{Phase: "question", Question: third, Text: "in one line", By: "ada"}))
	if err := s.opt.Progress.AddNote(t.Context(), unit, progress.Note{Phase: "question", Question: first, Text: "late", By: "ada"}); err == nil {
		t.Error("a question with an answer takes a note")
	}
	s.conduct(request{Only: []string{unit + "/" + third}})
	if u, err = s.opt.Progress.Unit(t.Context(), unit); err != nil || u.Questions()[2].Answer != "Nowhere." {
		t.Errorf("%+v, %v, failures %+v", u.Questions(), err, s.news(run.NewsFailed))
	}
}
