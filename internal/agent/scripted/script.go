package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"time"

	"github.com/goccy/go-yaml"
)

const ScriptVariable = "LOCKKEEPER_AGENT_SCRIPT"

// A Script has the calls for each kind of prompt.
type Script struct {
	Calls []Call `yaml:"calls"`

	state string // the directory that counts how often a call was played
}

// A Call has the steps for prompts of one kind.
type Call struct {
	Match    string `yaml:"match"`
	Times    int    `yaml:"times"`
	Stubborn bool   `yaml:"stubborn"`
	Steps    []Step `yaml:"steps"`
	Result   Result `yaml:"result"`

	match *regexp.Regexp
}

type Step struct {
	Say    *string        `yaml:"say"`
	Write  *Write         `yaml:"write"`
	Edit   *Edit          `yaml:"edit"`
	Delete *string        `yaml:"delete"`
	Tool   *Tool          `yaml:"tool"`
	Retry  *Retry         `yaml:"retry"`
	Sleep  *time.Duration `yaml:"sleep"`
	Await  *string        `yaml:"await"`
	Print  *string        `yaml:"print"`
	Log    *string        `yaml:"log"`
	Flood  *int64         `yaml:"flood"`
	Spawn  *time.Duration `yaml:"spawn"`
	Hang   *bool          `yaml:"hang"`
	Exit   *int           `yaml:"exit"`
	Die    *string        `yaml:"die"`
}

type Write struct {
	Path    string `yaml:"path"`
	Content string `yaml:"content"`
}

// An Edit replaces a text that occurs once in a file. It does not change a file that already
// has the new text, so that a call can be played again.
type Edit struct {
	Path    string `yaml:"path"`
	Find    string `yaml:"find"`
	Replace string `yaml:"replace"`
}

// A Tool is a tool call that changes nothing.
type Tool struct {
	Name   string         `yaml:"name"`
	Input  map[string]any `yaml:"input"`
	Answer string         `yaml:"answer"`
	Denied bool           `yaml:"denied"`
}

// A Retry is a request to the API that is retried.
type Retry struct {
	Status int           `yaml:"status"`
	Word   string        `yaml:"word"`
	Wait   time.Duration `yaml:"wait"`
}

// A Result is the end of a call.
type Result struct {
	Text       string  `yaml:"text"`
	Structured any     `yaml:"structured"`
	CostUSD    float64 `yaml:"cost_usd"`
	Tokens     Tokens  `yaml:"tokens"`
	Fail       *Fail   `yaml:"fail"`
	Cut        int     `yaml:"cut"`
}

// Tokens counts the tokens of a call.
type Tokens struct {
	Input      int64 `yaml:"input"`
	Output     int64 `yaml:"output"`
	CacheRead  int64 `yaml:"cache_read"`
	CacheWrite int64 `yaml:"cache_write"`
}

// A Fail is an error of the API that ends a call.
type Fail struct {
	Word   string `yaml:"word"`
	Status int    `yaml:"status"`
	Text   string `yaml:"text"`
	Resets int64  `yaml:"resets"` // when a limit of the account ends; 0: no limit
}

func ReadScript(file string) (*Script, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &Script{state: filepath.Clean(file) + ".state"}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(s); err != nil {
		return nil, fmt.Errorf("script %s: %s", file, yaml.FormatError(err, false, false))
	}
	for i := range s.Calls {
		if err := s.Calls[i].check(); err != nil {
			return nil, fmt.Errorf("script %s: call %d: %w", file, i+1, err)
		}
	}
	return s, nil
}

func (c *Call) check() (err error) {
	if c.match, err = regexp.Compile(c.Match); err != nil {
		return err
	}
	if c.Times < 0 || c.Result.Cut < 0 {
		return errors.New("times and cut cannot be negative")
	}
	for i, step := range c.Steps {
		if n := step.acts(); n != 1 {
			return fmt.Errorf("step %d has %d acts, want one", i+1, n)
		}
		if step.Edit != nil && (step.Edit.Find == "" || step.Edit.Find == step.Edit.Replace) {
			return fmt.Errorf("step %d: an edit finds a text and replaces it with a different one", i+1)
		}
		if step.Die != nil {
			if _, known := signals[*step.Die]; !known {
				return fmt.Errorf("step %d: signal %q is neither KILL nor TERM", i+1, *step.Die)
			}
		}
	}
	return nil
}

// acts counts the fields that are set.
func (s *Step) acts() (n int) {
	for _, act := range reflect.ValueOf(s).Elem().Fields() {
		if !act.IsNil() {
			n++
		}
	}
	return n
}

// find returns the call for a prompt, with the groups of its expression filled in.
func (s *Script) find(prompt string) (*Call, error) {
	for i := range s.Calls {
		c := &s.Calls[i]
		groups := c.match.FindStringSubmatchIndex(prompt)
		if groups == nil {
			continue
		}
		if c.Times > 0 {
			free, err := s.take(i, c.Times)
			if err != nil {
				return nil, err
			}
			if !free {
				continue
			}
		}
		if len(groups) > 2 {
			c.fill(func(text *string) {
				*text = string(c.match.ExpandString(nil, *text, prompt, groups))
			})
		}
		return c, nil
	}
	return nil, errors.New("no call of the script matches the prompt")
}

// take counts a play of a call, and reports whether its limit allows it. Concurrent processes
// are counted separately.
func (s *Script) take(call, times int) (bool, error) {
	if err := os.MkdirAll(s.state, 0o700); err != nil {
		return false, err
	}
	for n := range times {
		f, err := os.OpenFile(filepath.Join(s.state, fmt.Sprintf("%d.%d", call+1, n+1)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		switch {
		case err == nil:
			return true, f.Close()
		case !errors.Is(err, os.ErrExist):
			return false, err
		}
	}
	return false, nil
}

func (c *Call) fill(in func(*string)) {
	in(&c.Result.Text)
	c.Result.Structured = filled(c.Result.Structured, in)
	for _, s := range c.Steps {
		switch {
		case s.Say != nil:
			in(s.Say)
		case s.Write != nil:
			in(&s.Write.Path)
			in(&s.Write.Content)
		case s.Edit != nil:
			in(&s.Edit.Path)
			in(&s.Edit.Find)
			in(&s.Edit.Replace)
		case s.Delete != nil:
			in(s.Delete)
		}
	}
}

// filled returns a structured answer with its texts filled in.
func filled(value any, in func(*string)) any {
	switch v := value.(type) {
	case string:
		in(&v)
		return v
	case []any:
		for i := range v {
			v[i] = filled(v[i], in)
		}
	case map[string]any:
		for key := range v {
			v[key] = filled(v[key], in)
		}
	}
	return value
}
