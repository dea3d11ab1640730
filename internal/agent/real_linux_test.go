//go:build agents

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/agent/scriptedapi"
)

// realPrograms are the agents whose programs the tests run if they are installed.
var realPrograms = map[string]struct {
	variable string // names the program if it is not in PATH
	source   string // the package of the program in npm

	// confine gives a request an environment in which the program has no login and reaches
	// only a scripted API.
	confine func(t *testing.T, r *Request, s *scenario, home, api string)
}{
	"claude": {"LOCKKEEPER_TEST_CLAUDE", "@anthropic-ai/claude-code", func(_ *testing.T, r *Request, s *scenario, _, api string) {
		r.Env = append(r.Env, "ANTHROPIC_BASE_URL="+api, "CLAUDE_CODE_MAX_RETRIES=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "IS_SANDBOX=1")
		if !strings.Contains(strings.Join(s.env, " "), "OAUTH") {
			r.Env = append(r.Env, "ANTHROPIC_API_KEY=test")
		}
	}},
	"codex": {"LOCKKEEPER_TEST_CODEX", "@openai/codex", func(_ *testing.T, r *Request, _ *scenario, _, api string) {
		r.Env = append(r.Env, "OPENAI_API_KEY=not-a-real-key")
		r.Extra = []string{"-c", fmt.Sprintf(`model_providers.x={name="x",base_url="%s/v1",env_key="OPENAI_API_KEY",wire_api="responses",stream_max_retries=1,request_max_retries=1}`, api),
			"-c", "model_provider=x", "-c", "check_for_update_on_startup=false"}
	}},
	"gemini": {"LOCKKEEPER_TEST_GEMINI", "@google/gemini-cli", func(t *testing.T, r *Request, _ *scenario, home, api string) {
		r.Env = append(r.Env, "GEMINI_API_KEY=not-a-real-key", "GOOGLE_GEMINI_BASE_URL="+api)
		settings := `{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false}}`
		if err := os.Mkdir(filepath.Join(home, ".gemini"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".gemini/settings.json"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
	}},
}

// The adapters work with the programs that users have. With -update their output is
// recorded.
//
// shows: PL-11 PL-27 PL-70
func TestRealPrograms(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.agent+"/"+s.name, func(t *testing.T) {
			real := realPrograms[s.agent]
			name := os.Getenv(real.variable)
			if name == "" {
				name = s.agent
			}
			program, err := exec.LookPath(name)
			if err != nil {
				t.Fatalf("%s is not installed: put it into PATH or name it in %s; npm has it as %s", s.agent, real.variable, real.source)
			}
			dir, home, traces := t.TempDir(), t.TempDir(), t.TempDir()
			r := s.request(dir)
			r.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}
			real.confine(t, &r, &s, home, scriptedapi.StartIn(t, dir, s.script...).URL)
			r.Env = append(r.Env, s.env...)
			f := filesIn(traces)
			res, err := Call(t.Context(), s.adapter(t, program), r, f, Options{Run: runPlainly, Timeout: time.Minute})
			s.check(t, res, err, false)
			badAnswer := KindOf(s.failure) == Malformed
			if res.Exit == nil || res.Exit.ok() != (s.failure == nil || badAnswer) {
				t.Errorf("it ended with %+v", res.Exit)
			}
			if _, err := os.Stat(filepath.Join(dir, "hello.txt")); (err == nil) != (s.name == "tools") {
				t.Errorf("the file that it was to write: %v", err)
			}
			if *update {
				s.keep(t, f.Output, map[string]string{dir: "/workspace", home: "/home/agent"})
			}
		})
	}
}

var loopback = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// keep records the output of a program, without the paths of this machine.
func (s *scenario) keep(t *testing.T, output string, places map[string]string) {
	t.Helper()
	b, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	text, dashes := string(b), strings.NewReplacer("/", "-", "_", "-", ".", "-")
	for from, to := range places {
		text = strings.ReplaceAll(text, from, to)
		text = strings.ReplaceAll(text, dashes.Replace(from), dashes.Replace(to))
	}
	text = loopback.ReplaceAllString(text, "127.0.0.1:8080")
	if err := os.MkdirAll(filepath.Dir(s.record()), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.record(), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
