package flow

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"

	"lockkeeper"
)

//go:embed prompts/*.md
var embedded embed.FS

// An Ask has the data of a prompt. Each template uses the fields it needs.
type Ask struct {
	Phase string // the first word of the prompt
	Name  string // the unit, or unit/batch

	Files    []string // files to read
	Batch    *Batch
	Items    []Decided
	Analysis string // the analysis, as JSON
	Possible string // the possible items, as JSON
	Todo     string // the TODO items, as JSON
	Docs     string // the findings on screens, as JSON
	Research []ResearchText
	Screen   *ManifestScreen
	Diff     string
	Checks   []AskCheck
	Outputs  map[string]string // JSON documents of earlier phases that have no field here, by file
	Failure  string            // the output of a command
	Attempt  int               // the number of the attempt, out of Max
	Max      int               // 0: unknown
	Comments []string          // the reviewer's comments on the diff
	Notes    []string          // notes from people or from an earlier attempt
	Question string            // the question of a person
	Answer   string            // the form of the answer; empty: the schema of the template
}

// An AskCheck is the outcome of a check phase.
type AskCheck struct {
	Phase    string
	Skipped  string // why no command ran; empty: commands ran
	AsBefore string // what fails as it failed before the change; empty: nothing
}

// A ResearchText is the answer to a research topic.
type ResearchText struct{ Prompt, Text string }

// partials are templates that others include.
func partials() []string { return []string{"reading", "writing", "ending"} }

// These prompts belong to no phase.
const (
	FixReview = "fix_review" // for the agent that changes a returned diff
	Question  = "question"   // for the agent that answers a person's question
)

// QuestionAnswer is the answer to a question.
const QuestionAnswer = "explanation"

func promptAnswers() map[string]string {
	set := map[string]string{FixReview: "summary", Question: QuestionAnswer}
	for _, f := range All() {
		for _, p := range f.Phases {
			if p.Prompt != "" {
				set[p.Prompt] = p.Answer
			}
		}
	}
	return set
}

// Prompts are the templates of prompts.
type Prompts struct{ set *template.Template }

// NewPrompts returns the built-in templates. Templates in override replace those with the same
// name. The argument override may be nil.
func NewPrompts(override fs.FS) (*Prompts, error) {
	known := append(sortedKeys(promptAnswers()), partials()...)
	slices.Sort(known)
	p := &Prompts{template.New("").Funcs(template.FuncMap{"fence": fence, "json": indented, "lines": lines})}
	for _, name := range known {
		text, err := embedded.ReadFile("prompts/" + name + ".md")
		if err != nil {
			return nil, fmt.Errorf("built-in prompt %s: %w", name, err)
		}
		if err := p.parse(name+".md", text); err != nil {
			return nil, fmt.Errorf("built-in prompt: %w", err)
		}
	}
	if override == nil {
		return p, nil
	}
	return p, p.override(override, known)
}

func (p *Prompts) override(from fs.FS, known []string) error {
	entries, err := fs.ReadDir(from, ".")
	if err != nil {
		return fmt.Errorf("directory of prompts: %w", err)
	}
	var problems []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || e.IsDir() || !slices.Contains(known, name) {
			problems = append(problems, &lockkeeper.InputError{Field: "prompt", Value: e.Name(), Reason: "unknown prompt",
				Next: "remove it, or rename it to one of " + strings.Join(known, ".md, ") + ".md"})
			continue
		}
		text, err := fs.ReadFile(from, e.Name())
		if err == nil {
			err = p.parse(e.Name(), text)
		}
		if err != nil {
			problems = append(problems, &lockkeeper.InputError{Field: "prompt", Value: e.Name(), Reason: err.Error(), Next: "correct the template"})
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	return p.tryAll()
}

// parse parses a template without its last line end, so that including it adds no blank line.
func (p *Prompts) parse(name string, text []byte) error {
	_, err := p.set.New(name).Parse(strings.TrimRight(string(text), "\n"))
	return err
}

func (p *Prompts) tryAll() error {
	full := Ask{Phase: "trial", Name: "trial", Files: []string{"a"}, Batch: &Batch{}, Items: []Decided{{}}, Analysis: "{}", Possible: "{}", Todo: "{}", Docs: "{}",
		Research: []ResearchText{{}}, Screen: &ManifestScreen{}, Diff: "a", Failure: "a", Attempt: 1, Max: 2, Notes: []string{"a"}, Question: "a"}
	var problems []error
	for _, name := range sortedKeys(promptAnswers()) {
		if _, err := p.Render(name, full); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func (p *Prompts) Names() []string { return sortedKeys(promptAnswers()) }

// Render renders a prompt. Its first line is "# <phase> <name>".
func (p *Prompts) Render(name string, a Ask) (string, error) {
	answer, ok := promptAnswers()[name]
	if !ok {
		return "", &lockkeeper.InputError{Field: "prompt", Value: name, Reason: "unknown", Next: "use one of " + strings.Join(p.Names(), ", ")}
	}
	heading := "# " + a.Phase + " " + a.Name
	if a.Phase == "" || a.Name == "" || strings.ContainsFunc(heading, isControl) {
		return "", &lockkeeper.InputError{Field: "heading of a prompt", Value: heading, Reason: "not a phase and a name on one line", Next: "name both"}
	}
	if a.Answer == "" {
		a.Answer = "One JSON object that fits this schema, and nothing around it:\n\n" + fence("json", string(AnswerSchema(answer)))
	}
	var b strings.Builder
	b.WriteString(heading + "\n\n")
	if err := p.set.ExecuteTemplate(&b, name+".md", a); err != nil {
		return "", &lockkeeper.InputError{Field: "prompt", Value: name + ".md", Reason: err.Error(), Next: "correct the template"}
	}
	return strings.TrimRight(b.String(), "\n") + "\n", nil
}

// fence encloses text in fences that are longer than any fence in the text, so that the text
// cannot end them.
func fence(language, text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + language + "\n" + strings.TrimRight(text, "\n") + "\n" + mark
}

// indented returns a value, or JSON text, as indented JSON.
func indented(value any) (string, error) {
	if text, ok := value.(string); ok {
		if !json.Valid([]byte(text)) {
			return text, nil
		}
		value = json.RawMessage(text)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(value)
	return b.String(), err
}

// lines returns a list of paths, one per line. A path with a control character is quoted.
func lines(list []string) string {
	shown := make([]string, len(list))
	for i, s := range list {
		shown[i] = path.Clean(s)
		if strings.HasSuffix(s, "/") {
			shown[i] += "/"
		}
		if strings.ContainsFunc(s, isControl) {
			shown[i] = fmt.Sprintf("%q", s)
		}
	}
	return strings.Join(shown, "\n")
}
