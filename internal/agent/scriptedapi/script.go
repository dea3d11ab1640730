package scriptedapi

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Play is a conversation: the answers to prompts of one kind.
type Play struct {
	Prompt string // a regular expression; empty matches everything
	Times  int    // how often the play may begin; 0: any number
	Steps  []Step
}

type Step struct {
	Expect string // a regular expression that the results of the tools must match

	Text  string
	Tools []Tool
	Stop  string // the stop reason; empty: tool_use or end_turn, whichever fits
	Usage Usage  // zero: 100 input tokens, 20 output tokens, 7 from the cache, 3 into the cache

	Fail *Fail         // an error instead of an answer
	Wait time.Duration // wait before the answer
	Hang bool          // no answer until the client disconnects
	Cut  bool          // the connection ends in the middle of the answer
}

type Tool struct {
	Name  string
	Input map[string]any
	Text  string // used instead of the input, for tools of Codex that take a text
}

// Bash returns a call that runs a command.
func Bash(command string) Tool {
	return Tool{Name: "Bash", Input: map[string]any{"command": command, "description": "a step of the script"}}
}

func Write(file, content string) Tool {
	return Tool{Name: "Write", Input: map[string]any{"file_path": file, "content": content}}
}

// Read returns a call that reads a file. It must come before an Edit.
func Read(file string) Tool {
	return Tool{Name: "Read", Input: map[string]any{"file_path": file}}
}

// Edit returns a call that replaces a text in a file.
func Edit(file, from, to string) Tool {
	return Tool{Name: "Edit", Input: map[string]any{"file_path": file, "old_string": from, "new_string": to}}
}

// Structured returns a structured answer, as for --json-schema.
func Structured(answer map[string]any) Tool {
	return Tool{Name: "StructuredOutput", Input: answer}
}

// A Fail is an error of the API.
type Fail struct {
	Status  int
	Type    string // the API's name for the error
	Message string
	Header  map[string]string
	Body    string // the raw body of the response, instead of the document with type and message
}

// Usage counts tokens.
type Usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// A script is a list of valid plays.
type script []play

type play struct {
	Play
	prompt *regexp.Regexp
	expect []*regexp.Regexp // the expected results, by step
	begun  int
}

func newScript(dir string, plays []Play) (script, error) {
	s := make(script, len(plays))
	for i, p := range plays {
		prompt, err := regexp.Compile(p.Prompt)
		if err != nil {
			return nil, fmt.Errorf("play %d: %w", i, err)
		}
		if len(p.Steps) == 0 {
			return nil, fmt.Errorf("play %d has no steps", i)
		}
		s[i] = play{Play: p, prompt: prompt}
		for n, step := range p.Steps {
			if dir == "" && strings.Contains(string(encode(step)), "{dir}") {
				return nil, fmt.Errorf("play %d, step %d: no directory is known for {dir}; start the server with StartIn", i, n)
			}
			expect, err := regexp.Compile(step.Expect)
			if err != nil {
				return nil, fmt.Errorf("play %d, step %d: %w", i, n, err)
			}
			if n == 0 && step.Expect != "" {
				return nil, fmt.Errorf("play %d: the first step has no results to expect", i)
			}
			s[i].expect = append(s[i].expect, expect)
		}
	}
	return s, nil
}

type stepIndex struct{ play, step int }

// toolID returns an id for a tool call, from which stepOf finds the step again.
func (p stepIndex) toolID(n int64) string { return fmt.Sprintf("toolu_%d_%d_%06d", p.play, p.step, n) }

var toolIDPattern = regexp.MustCompile(`^toolu_(\d+)_(\d+)_\d+$`)

func stepOf(toolID string) (stepIndex, bool) {
	m := toolIDPattern.FindStringSubmatch(toolID)
	if m == nil {
		return stepIndex{}, false
	}
	play, errPlay := strconv.Atoi(m[1])
	step, errStep := strconv.Atoi(m[2])
	return stepIndex{play, step}, errPlay == nil && errStep == nil
}

// next finds the step that answers a request.
func (s script) next(r *Request) (stepIndex, error) {
	if len(r.Results) == 0 {
		return s.begin(r.Prompt)
	}
	last, ok := stepOf(r.answers)
	if !ok || last.play >= len(s) {
		return stepIndex{}, fmt.Errorf("the results answer the tool use %q, which is not in this script", r.answers)
	}
	at := stepIndex{last.play, last.step + 1}
	if at.step >= len(s[at.play].Steps) {
		return stepIndex{}, fmt.Errorf("play %d has no step after %d", at.play, last.step)
	}
	if results := strings.Join(r.Results, "\n"); !s[at.play].expect[at.step].MatchString(results) {
		return stepIndex{}, fmt.Errorf("play %d, step %d expects the tool results %q, got %q", at.play, at.step, s[at.play].Steps[at.step].Expect, results)
	}
	return at, nil
}

// begin finds the play for a prompt, and counts it.
func (s script) begin(prompt string) (stepIndex, error) {
	for i := range s {
		if p := &s[i]; (p.Times == 0 || p.begun < p.Times) && p.prompt.MatchString(prompt) {
			p.begun++
			return stepIndex{i, 0}, nil
		}
	}
	return stepIndex{}, fmt.Errorf("no play matches the prompt %q", prompt)
}

// filled returns a step with the placeholders in its texts filled in.
func (s script) filled(at stepIndex, r *Request, dir string) Step {
	step := s[at.play].Steps[at.step]
	pairs := []string{"{dir}", dir}
	for i, group := range s[at.play].prompt.FindStringSubmatch(r.Prompt) {
		pairs = append(pairs, fmt.Sprintf("{%d}", i), group)
	}
	fill := strings.NewReplacer(pairs...)
	step.Text = fill.Replace(step.Text)
	tools := make([]Tool, len(step.Tools))
	for i, t := range step.Tools {
		tools[i] = Tool{Name: t.Name, Input: filledIn(t.Input, fill).(map[string]any), Text: fill.Replace(t.Text)}
	}
	step.Tools = tools
	return step
}

// staysInside returns an error if a tool would get an absolute path that is neither in the agent's
// directory nor temporary. A placeholder that was filled with nothing makes such a path.
func (s Step) staysInside(dir string) error {
	for _, t := range s.Tools {
		for name, value := range t.Input {
			path, isText := value.(string)
			if !isText || !strings.Contains(strings.ToLower(name), "path") || !filepath.IsAbs(path) {
				continue
			}
			if !slices.ContainsFunc([]string{dir, os.TempDir()}, func(root string) bool {
				rel, err := filepath.Rel(root, path)
				return root != "" && err == nil && filepath.IsLocal(rel)
			}) {
				return fmt.Errorf("%s would access %s, which is outside of the directories of the test", t.Name, path)
			}
		}
	}
	return nil
}

func filledIn(value any, fill *strings.Replacer) any {
	switch v := value.(type) {
	case string:
		return fill.Replace(v)
	case map[string]any:
		filled := make(map[string]any, len(v))
		for name, member := range v {
			filled[name] = filledIn(member, fill)
		}
		return filled
	case []any:
		filled := make([]any, len(v))
		for i, member := range v {
			filled[i] = filledIn(member, fill)
		}
		return filled
	}
	return value
}
