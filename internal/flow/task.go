package flow

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"lockkeeper"
)

type TaskFile struct {
	Agent string   // the agent of tasks that name none
	Tests []string // the test commands of tasks that name none
	Tasks []Task

	file string // name of the file in messages
}

// A Task is one task of a plan file.
type Task struct {
	Name       string
	Prompt     string // text for the agent
	PromptFile string // read by ReadPrompts instead of Prompt
	Reads      []string
	Writes     []string
	After      []string
	Tests      []string
	Agent      string
	Duration   time.Duration // how long it will probably take, for simulations; 0: unknown

	text taskText // the same fields, with positions
}

// CheckPaths refuses the paths that the functions write and read refuse.
func (p *TaskFile) CheckPaths(write, read func(path string) error) error {
	var problems []error
	check := func(t Task, paths []located, permits func(path string) error) {
		for _, path := range paths {
			if err := permits(path.value); err != nil {
				problems = append(problems, path.wrong(p.file, t.Name, err))
			}
		}
	}
	for _, t := range p.Tasks {
		check(t, t.text.Writes, write)
		check(t, t.text.Reads, read)
	}
	return errors.Join(problems...)
}

func (p *TaskFile) ReadPrompts(read func(file string) (string, error)) error {
	var problems []error
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.PromptFile == "" {
			continue
		}
		var err error
		if t.Prompt, err = read(t.PromptFile); err != nil {
			problems = append(problems, t.text.PromptFile.wrong(p.file, t.Name, err))
		}
	}
	return errors.Join(problems...)
}

// Batches returns the plan of the tasks, each after those in its After. The author of the file
// approved it by writing it.
func (p *TaskFile) Batches(approvedBy string, at time.Time) Plan {
	batches := make([]Batch, len(p.Tasks))
	for i, t := range p.Tasks {
		batches[i] = Batch{ID: t.Name, Title: t.Name, Items: []string{}, WriteTargets: Targets(t.Writes), Reads: Targets(t.Reads),
			After: t.After, Prompt: t.Prompt, Tests: t.Tests, Agent: t.Agent}
		if len(t.Tests) == 0 {
			batches[i].Tests = slices.Clone(p.Tests)
		}
		if t.Agent == "" {
			batches[i].Agent = p.Agent
		}
	}
	if ordered, err := inOrder(batches); err == nil { // ReadTasks refuses circles
		batches = ordered
	}
	return Plan{Batches: batches, Approved: &Approval{By: approvedBy, At: at}}
}

var taskName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(idForm) })

func (f *planText) check(file string) error {
	var problems []error
	report := func(at spot, member, reason, next string) {
		problems = append(problems, at.wrong(file, member, lockkeeper.WithNext(errors.New(reason), next)))
	}
	if len(f.Tasks) == 0 {
		report(spot{}, "tasks", "missing", "add a task with name, prompt and writes")
	}
	lines := map[string]int{}
	for _, t := range f.Tasks {
		name := t.Name.value
		switch first, twice := lines[name]; {
		case name == "":
			report(t.spot(), "task", "the name is missing", "add a name")
			continue
		case !taskName().MatchString(name):
			report(t.Name.spot, name, "not a name: letters, digits, dots, dashes and underscores, at most 100", "")
		case twice:
			report(t.Name.spot, name, fmt.Sprintf("the task in line %d has this name", first), "give each its own")
		}
		lines[name] = t.Name.line
		switch {
		case t.Prompt.value == "" && t.PromptFile.value == "":
			report(t.Name.spot, name, "neither prompt nor prompt_file", "describe the change")
		case t.Prompt.value != "" && t.PromptFile.value != "":
			report(t.PromptFile.spot, name, "both prompt and prompt_file", "keep one of them")
		}
		if _, err := t.duration(); err != nil {
			problems = append(problems, t.Duration.spot.wrong(file, name+"/duration", err))
		}
		if len(t.Writes) == 0 {
			report(t.Name.spot, name, "no writes: it could change nothing", "name the files that it will change")
		}
		for _, w := range t.Writes {
			if _, err := writable(w.value); err != nil {
				problems = append(problems, w.spot.wrong(file, name+"/writes", err))
			}
		}
		for _, r := range t.Reads {
			if _, err := readable(r.value); err != nil {
				problems = append(problems, r.spot.wrong(file, name+"/reads", err))
			}
		}
	}
	for _, t := range f.Tasks {
		for _, after := range t.After {
			if _, known := lines[after.value]; !known {
				report(after.spot, t.Name.value+"/after", fmt.Sprintf("unknown task %q", after.value), "name one of "+strings.Join(sortedKeys(lines), ", "))
			}
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	return f.circles(file)
}

func (f *planText) circles(file string) error {
	_, err := inOrder(f.plan(file).Batches("", time.Time{}).Batches)
	var round *circleError
	if !errors.As(err, &round) {
		return err
	}
	i := slices.IndexFunc(f.Tasks, func(t taskText) bool { return slices.Contains(round.ids, t.Name.value) })
	return f.Tasks[i].After[0].spot.wrong(file, f.Tasks[i].Name.value+"/after", err)
}

// A spot is a position in a file. Line 0 means the whole file.
type spot struct{ line, column int }

func (s spot) wrong(file, member string, err error) error {
	return &DocumentError{File: file, Line: s.line, Column: s.column, Member: member, Err: err}
}

// A located is a text with its position.
type located struct {
	value string
	spot
}

// UnmarshalYAML implements yaml.NodeUnmarshaler. It accepts only text, because a number or a word
// like true is usually a mistake.
func (l *located) UnmarshalYAML(node ast.Node) error {
	at := node.GetToken()
	l.spot = spot{at.Position.Line, at.Position.Column}
	switch n := node.(type) {
	case *ast.StringNode:
		l.value = n.Value
	case *ast.LiteralNode:
		l.value = n.Value.Value
	default:
		return &misfit{l.spot, lockkeeper.WithNext(errors.New("must be text"), "write it in quotes")}
	}
	if strings.TrimSpace(l.value) == "" {
		return &misfit{l.spot, lockkeeper.WithNext(errors.New("empty"), "fill it in, or leave the key out")}
	}
	return nil
}

// A misfit is a value of an invalid form.
type misfit struct {
	at spot
	error
}

type planText struct {
	Agent located    `yaml:"agent"`
	Tests []located  `yaml:"tests"`
	Tasks []taskText `yaml:"tasks"`
}

type taskText struct {
	Name       located   `yaml:"name"`
	Prompt     located   `yaml:"prompt"`
	PromptFile located   `yaml:"prompt_file"`
	Reads      []located `yaml:"reads"`
	Writes     []located `yaml:"writes"`
	After      []located `yaml:"after"`
	Tests      []located `yaml:"tests"`
	Agent      located   `yaml:"agent"`
	Duration   located   `yaml:"duration"`
}

// duration returns the duration of a task; 0: it has none.
func (t taskText) duration() (time.Duration, error) {
	if t.Duration.value == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(t.Duration.value)
	if err == nil && d <= 0 {
		err = errors.New("not positive")
	}
	if err != nil {
		err = lockkeeper.WithNext(fmt.Errorf("not a duration: %q", t.Duration.value), "say how long it will take, such as 2m or 1h30m")
	}
	return d, err
}

// spot returns the position of a task without a name.
func (t taskText) spot() spot {
	for _, l := range append([]located{t.Prompt, t.PromptFile, t.Agent}, append(t.Writes, t.Reads...)...) {
		if l.line > 0 {
			return l.spot
		}
	}
	return spot{}
}

// ReadTasks reads a plan of tasks. Messages use name for the file.
func ReadTasks(name string, text []byte) (*TaskFile, error) {
	if !utf8.Valid(text) {
		return nil, spot{}.wrong(name, "", lockkeeper.WithNext(errors.New("not UTF-8 text"), "save it as UTF-8"))
	}
	if err := tooMuch(name, lexer.Tokenize(string(text))); err != nil {
		return nil, err
	}
	var f planText
	dec := yaml.NewDecoder(strings.NewReader(string(text)), yaml.Strict())
	if err := dec.Decode(&f); err != nil && len(strings.TrimSpace(string(text))) > 0 {
		return nil, notYAML(name, err)
	}
	if err := f.check(name); err != nil {
		return nil, err
	}
	return f.plan(name), nil
}

// notYAML returns an error with the position of a syntax error. It keeps only the first line of
// the parser's message, because the rest quotes the file.
func notYAML(name string, err error) error {
	if form, ok := errors.AsType[*misfit](err); ok {
		return form.at.wrong(name, "", form.error)
	}
	var at spot
	reason := err.Error()
	var known yaml.Error
	if errors.As(err, &known) {
		reason = known.GetMessage()
		if t := known.GetToken(); t != nil && t.Position != nil {
			at = spot{t.Position.Line, t.Position.Column}
		}
	}
	reason, _, _ = strings.Cut(reason, "\n")
	return at.wrong(name, "", errors.New(reason))
}

// maxDepth and maxColumn bound the nesting of a plan, because the parser is recursive.
const (
	maxDepth  = 16
	maxColumn = 1_000
)

// tooMuch refuses YAML that no plan needs and that can keep a parser busy.
func tooMuch(name string, tokens token.Tokens) error {
	depth, documents := 0, 0
	for _, t := range tokens {
		reason, next := "", ""
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
			reason = fmt.Sprintf("%q: a plan cannot have anchors, aliases or tags", t.Value)
		case token.DocumentHeaderType:
			if documents++; documents > 1 || t.Prev != nil && t.Prev.Type != token.CommentType {
				reason, next = "a second document in one file", "keep one, and remove the line ---"
			}
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Column > maxColumn {
				reason = "nested too deep"
			}
		}
		if depth > maxDepth {
			reason = "nested too deep"
		}
		if reason != "" {
			return spot{t.Position.Line, t.Position.Column}.wrong(name, "", lockkeeper.WithNext(errors.New(reason), next))
		}
	}
	return nil
}

func (f *planText) plan(name string) *TaskFile {
	p := &TaskFile{Agent: f.Agent.value, Tests: values(f.Tests), file: name}
	for _, t := range f.Tasks {
		takes, _ := t.duration() // check has refused an invalid one
		p.Tasks = append(p.Tasks, Task{Duration: takes, Name: t.Name.value, Prompt: t.Prompt.value, PromptFile: t.PromptFile.value, Reads: values(t.Reads),
			Writes: values(t.Writes), After: values(t.After), Tests: values(t.Tests), Agent: t.Agent.value, text: t})
	}
	return p
}

func values(list []located) (texts []string) {
	for _, l := range list {
		texts = append(texts, l.value)
	}
	return texts
}
