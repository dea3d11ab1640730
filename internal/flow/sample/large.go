package sample

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/flow"
)

// A Large is an application of any size, with batches that contend for shared files. The seed
// determines the changes of each batch.
type Large struct {
	Controllers int
	Seed        uint64
	Pause       time.Duration // the duration of each agent call
}

// These are sizes and probabilities of a large application. A controller's own file is used by one
// controller, a module's file by some, and a concern by all.
const (
	perModule  = 6
	maxBatches = 3
	shapes     = 12 // number of different shapes; a script has calls for each shape

	writesModel   = 0.4
	writesConcern = 0.25
	readsConcern  = 0.5
	comesAfter    = 0.3
)

func concerns() []string {
	return []string{"app/controllers/concerns/authentication.rb", "app/controllers/concerns/error_handling.rb", "app/controllers/concerns/pagination.rb"}
}

// A shape is a division of a controller into batches.
type shape []part

// A part is one batch of a shape. It changes the controller or its view, and maybe more.
type part struct {
	model         bool
	writes, reads []string // the concerns that the part writes and reads
	after         bool     // the part comes after the previous one
}

func drawShape(chance *rand.Rand) shape {
	s := make(shape, 1+chance.IntN(maxBatches))
	for i := range s {
		s[i].model = chance.Float64() < writesModel
		concern := concerns()[chance.IntN(len(concerns()))]
		switch draw := chance.Float64(); {
		case draw < writesConcern:
			s[i].writes = []string{concern}
		case draw < writesConcern+readsConcern:
			s[i].reads = []string{concern}
		}
		s[i].after = i > 0 && chance.Float64() < comesAfter
	}
	return s
}

type unit struct {
	module, name string
	shape        int // number of the controller's shape
	batches      []flow.Batch
}

func (u *unit) id() string         { return u.module + "/" + u.name }
func (u *unit) controller() string { return "app/controllers/" + u.id() + "_controller.rb" }
func (u *unit) view() string       { return "app/views/" + u.id() + "/index.html.erb" }
func (u *unit) model() string      { return "app/models/" + u.module + "/record.rb" }

func newUnit(module, name string, number int, s shape) unit {
	u := unit{module: module, name: name, shape: number}
	for i, p := range s {
		b := flow.Batch{ID: fmt.Sprintf("b%d", i+1), Title: fmt.Sprintf("Part %d", i+1), Items: []string{fmt.Sprintf("i%d", i+1)},
			WriteTargets: []string{u.controller()}, Reads: p.reads, Effort: flow.Medium}
		if i%2 == 1 {
			b.WriteTargets = []string{u.view()}
		}
		if p.model {
			b.WriteTargets = append(b.WriteTargets, u.model())
		}
		b.WriteTargets = append(b.WriteTargets, p.writes...)
		if p.after {
			b.After = []string{fmt.Sprintf("b%d", i)}
		}
		u.batches = append(u.batches, b)
	}
	last := &u.batches[len(s)-1] // gets the remaining items
	for i := len(s); i < maxBatches; i++ {
		last.Items = append(last.Items, fmt.Sprintf("i%d", i+1))
	}
	return u
}

func (l Large) draw() ([]shape, []unit) {
	chance := rand.New(rand.NewPCG(l.Seed, 0))
	all := make([]shape, shapes)
	for i := range all {
		all[i] = drawShape(chance)
	}
	units := make([]unit, l.Controllers)
	for i := range units {
		number := chance.IntN(shapes)
		units[i] = newUnit(fmt.Sprintf("area%03d", i/perModule+1), fmt.Sprintf("page%04d", i+1), number, all[number])
	}
	return all, units
}

// planned and done return the line of a batch in a file that it writes, before and after the
// change. Each batch has its own line, so batches can land in any order, and a lost change is
// visible.
func (u *unit) planned(b *flow.Batch, path string) string { return mark("to do", u, b, path) }
func (u *unit) done(b *flow.Batch, path string) string    { return mark("done", u, b, path) }

func mark(state string, u *unit, b *flow.Batch, path string) string {
	if filepath.Ext(path) == ".erb" {
		return fmt.Sprintf("<%%# %s: %s/%s %%>\n", state, u.id(), b.ID)
	}
	return fmt.Sprintf("# %s: %s/%s.\n", state, u.id(), b.ID)
}

// Write creates the application in a directory. Its commands are the same as those of the sample.
func (l Large) Write(dir string) error {
	all, err := application()
	if err != nil {
		return err
	}
	files := map[string]string{}
	for path, text := range all {
		if strings.HasPrefix(path, "bin/") || slices.Contains(concerns(), path) || slices.Contains([]string{
			"app/controllers/application_controller.rb", "app/models/application_record.rb", "app/views/shared/not_found.html.erb", "config/routes.rb", "test/test_helper.rb"}, path) {
			files[path] = text
		}
	}
	_, units := l.draw()
	for _, u := range units {
		constant := title(u.module) + "::" + title(u.name)
		files[u.controller()] = fmt.Sprintf(`class %sController < ApplicationController
  include Pagination

  before_action :require_login, except: [:index]

  def index
    @records = paginate(%s::Record.newest_first)
  end
end
`, constant, title(u.module))
		files[u.view()] = fmt.Sprintf("<h1>%s</h1>\n", title(u.name))
		files["test/controllers/"+u.id()+"_controller_test.rb"] = fmt.Sprintf(`require "test_helper"

# expects: newest_first in %s
# expects: require_login in app/controllers/concerns/authentication.rb
class %sControllerTest < ActionDispatch::IntegrationTest
  test "the list is open to everyone" do
    assert_template "%s/index"
  end
end
`, u.model(), constant, u.id())
		if _, there := files[u.model()]; !there {
			files[u.model()] = fmt.Sprintf("class %s::Record < ApplicationRecord\n  scope :newest_first, -> { order(created_at: :desc) }\nend\n", title(u.module))
		}
		for _, b := range u.batches {
			for _, path := range b.WriteTargets {
				files[path] += u.planned(&b, path)
			}
		}
	}
	return write(dir, files)
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// Lost lists the changes that are missing in the application in dir, as "batch: file", after
// all batches landed.
func (l Large) Lost(dir string) (lost []string, err error) {
	_, units := l.draw()
	for _, u := range units {
		for _, b := range u.batches {
			for _, path := range b.WriteTargets {
				text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
				if err != nil {
					return lost, err
				}
				if strings.Count(string(text), u.done(&b, path)) != 1 || strings.Contains(string(text), u.planned(&b, path)) {
					lost = append(lost, u.id()+"/"+b.ID+": "+path)
				}
			}
		}
	}
	return lost, nil
}

// An object is a part of a script or of a plan. A script is YAML, which includes JSON.
type object map[string]any

// Script returns the script of agents in the flow "controllers": every call takes as long as
// Pause, all tests pass, and agents write only declared files.
func (l Large) Script() ([]byte, error) {
	var items []flow.Possible
	ready := flow.Synthesis{Dropped: []flow.Dropped{}}
	for n := range maxBatches {
		what := fmt.Sprintf("Improve part %d", n+1)
		items = append(items, flow.Possible{Description: what})
		ready.Items = append(ready.Items, flow.Ready{ID: fmt.Sprintf("i%d", n+1), Description: what, Impact: flow.High, Effort: flow.Low, Rationale: "It is there to be improved."})
	}
	calls := []object{
		l.call(`^# analyze `, flow.Analysis{Purpose: "Shows a list.", Behaviour: "The list is open to everyone.", Screens: []flow.Served{{Name: "List", Action: "index"}},
			Relations: []flow.Relation{}, Files: concerns(), Topics: []flow.Topic{}}),
		l.call(`^# extract `, flow.Extract{Items: items}),
		l.call(`^# synthesize `, ready),
		l.call(`^# verify `, flow.Verdict{Verdict: "pass", Report: "The line is marked as done.", Issues: []string{}}),
		l.call(`^# fix_(?:tests|ci) `, object{"summary": "Nothing was changed."}),
	}
	all, units := l.draw()
	names := make([][]string, len(all)) // names of the controllers of each shape
	for _, u := range units {
		names[u.shape] = append(names[u.shape], u.name)
	}
	for number, s := range all {
		if names[number] == nil {
			continue
		}
		who := `(\w+)/(` + strings.Join(names[number], "|") + `)`
		u := newUnit("${1}", "${2}", number, s)
		var batches []object
		for _, b := range u.batches {
			batches = append(batches, object{"id": b.ID, "title": b.Title, "items": b.Items, "write_targets": b.WriteTargets,
				"reads": append([]string{}, b.Reads...), "effort": b.Effort, "after": append([]string{}, b.After...)})
			var edits []object
			for _, path := range b.WriteTargets {
				edits = append(edits, object{"edit": object{"path": path, "find": u.planned(&b, path), "replace": u.done(&b, path)}})
			}
			calls = append(calls, l.call(`^# apply `+who+`/`+b.ID+`\s`, object{"summary": "Marked as done."}, edits...))
		}
		calls = append(calls, l.call(`^# batch_plan `+who+`\s`, object{"batches": batches}))
	}
	return lines("calls", calls)
}

func (l Large) call(match string, answer any, steps ...object) object {
	return object{"match": match, "steps": append([]object{{"sleep": l.Pause.String()}}, steps...),
		"result": object{"structured": answer, "cost_usd": 0.1, "tokens": object{"input": 1000, "output": 100}}}
}

// Plan returns the same work for lockkeeper simulate. Checks is the duration of a batch's tests
// and checks. The plan has no reads, because a run does not lock them.
func (l Large) Plan(checks time.Duration) ([]byte, error) {
	var items []object
	_, units := l.draw()
	for _, u := range units {
		var before []string
		for _, phase := range []string{"analyze", "extract", "synthesize", "batch_plan"} {
			name := u.id() + "/" + phase
			items = append(items, object{"name": name, "phase": phase, "project": u.module, "unit": "controller", "duration": millis(l.Pause), "after": before})
			before = []string{name}
		}
		for _, b := range u.batches {
			after := before
			for _, id := range b.After {
				after = append(after[:len(after):len(after)], u.id()+"/"+id)
			}
			items = append(items, object{"name": u.id() + "/" + b.ID, "phase": "apply", "project": u.module, "unit": "batch",
				"duration": millis(2*l.Pause + checks), "writes": b.WriteTargets, "after": after})
		}
	}
	return lines("items", items)
}

func millis(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// lines returns a list under a key, with one entry per line.
func lines(key string, list []object) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s:\n", key)
	for _, entry := range list {
		text, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "- %s\n", text)
	}
	return b.Bytes(), nil
}
