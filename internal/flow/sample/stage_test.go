package sample

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/project/config"
)

// orders returns the seeds of the orders in which batches run.
func orders(n uint64) []uint64 {
	if more, err := strconv.ParseUint(os.Getenv("LOCKKEEPER_TORTURE"), 10, 8); err == nil && more > 1 {
		n *= more
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	return seeds
}

// A stage is an application in which agents work one after the other.
type stage struct {
	testing.TB
	dir, script string
}

func newStage(t testing.TB, dir string, script []byte, err error) *stage {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err == nil {
		err = os.WriteFile(file, script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, dir, file}
}

func blog(t testing.TB) *stage {
	script, err := Script(0)
	return newStage(t, fresh(t), script, err)
}

// ask plays an agent's answer to a prompt and checks it against its schema.
func (s *stage) ask(prompt, name string, schema string, into any) {
	s.Helper()
	var out, log bytes.Buffer
	code := scripted.Run(s.Context(), scripted.Process{
		Args:   []string{"-p", "--output-format=json", "--json-schema={}", "--dangerously-skip-permissions"},
		Script: s.script, Dir: s.dir, Stdin: strings.NewReader("# " + prompt + " " + name + "\n\nDo it.\n"), Stdout: &out, Stderr: &log,
	})
	var result struct {
		Answer json.RawMessage `json:"structured_output"`
		Cost   float64         `json:"total_cost_usd"`
		Usage  struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(out.Bytes(), &result); code != 0 || err != nil {
		s.Fatalf("%s %s: exit %d, %v\n%s%s", prompt, name, code, err, out.String(), log.String())
	}
	if result.Cost <= 0 || result.Usage.Input == 0 || result.Usage.Output == 0 {
		s.Errorf("%s %s is for nothing: %s", prompt, name, out.String())
	}
	fits(s, prompt+" "+name, schema, result.Answer)
	if err := json.Unmarshal(result.Answer, into); err != nil {
		s.Fatal(err)
	}
}

func fits(t testing.TB, what, schema string, answer []byte) {
	t.Helper()
	form, err := jsonschema.UnmarshalJSON(bytes.NewReader(flow.AnswerSchema(schema)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("answer.json", form); err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
	if err == nil {
		err = compiler.MustCompile("answer.json").Validate(value)
	}
	if err != nil {
		t.Errorf("the answer to %s does not fit: %v", what, err)
	}
}

// A ran counts the events of a batch.
type ran struct{ gaps, fixedTests, fixedCI int }

// allowed reports whether the defaults of Rails permit agents to write a path.
func (s *stage) allowed(path string) bool {
	s.Helper()
	dir := s.TempDir()
	if err := os.WriteFile(filepath.Join(dir, config.FileName), []byte("layout: rails\n"), 0o644); err != nil {
		s.Fatal(err)
	}
	c, err := config.Load(filepath.Join(dir, config.FileName), nil, nil)
	if err != nil {
		s.Fatal(err)
	}
	return slices.ContainsFunc(c.Gate.AllowedWritePaths, func(dir string) bool {
		return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	})
}

// work takes a batch through its phases. It rolls back undeclared changes and fixes a failure
// once.
func (s *stage) work(prompt, name string, b flow.Batch, tests ...string) (r ran) {
	s.Helper()
	for _, path := range b.WriteTargets {
		if !s.allowed(path) {
			s.Errorf("%s would write %s", name, path)
		}
	}
	var did struct{ Summary string }
	before, held := tree(s, s.dir), map[string]string{}
	for path := range before {
		held[path] = content(s, s.dir, path)
	}
	s.ask(prompt, name, "summary", &did)
	settle := func() {
		changed := false
		for path, is := range tree(s, s.dir) {
			switch {
			case is == before[path]:
			case !slices.Contains(b.WriteTargets, path):
				r.gaps++
				put(s, s.dir, path, held[path])
			default:
				changed = true
			}
		}
		if !changed {
			s.Errorf("%s changed nothing", name)
		}
	}
	settle()
	check := func(fixes *int, prompt, command string) {
		if ok, _ := sh(s, s.dir, command); ok {
			return
		}
		*fixes++
		s.ask(prompt, name, "summary", &did)
		settle()
		if ok, said := sh(s, s.dir, command); !ok {
			s.Errorf("%s is not fixed: %s", name, said)
		}
	}
	for _, test := range tests {
		check(&r.fixedTests, "fix_tests", test)
	}
	check(&r.fixedCI, "fix_ci", CI)
	return r
}

// rightNow fails the test if the application fails its checks.
func (s *stage) rightNow() {
	s.Helper()
	for _, command := range []string{Test, CI} {
		if ok, said := sh(s, s.dir, command); !ok {
			s.Error(said)
		}
	}
}
