package escape

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An ownDir is the directory in a person's home in which an agent keeps its login, settings and
// sessions.
type ownDir struct {
	agent, dir string
	variable   string // sets its location, or its parent if inHome is true
	inHome     bool
	login      string
	there      map[string]string // the person's files in addition to the login
	plant      []string          // files that the agent tries to leave for the person's next session
	answer     []string          // the output with which the program ends; %s is the answer
}

const oldSession = "projects/-old/secret.jsonl"

var ownDirs = []ownDir{
	{agent: "claude", dir: ".claude", variable: "CLAUDE_CONFIG_DIR", login: ".credentials.json",
		there: map[string]string{"settings.json": "{}\n", "hooks/check.sh": "#!/bin/sh\n", "../.claude.json": `{"userID":"ann"}`},
		plant: []string{"settings.json", "settings.local.json", "hooks/check.sh", "hooks/new.sh", "plugins/installed_plugins.json", "agents/a.md", "CLAUDE.md", "projects/-old/memory/MEMORY.md", "../.claude.json", ".claude.json"},
		answer: []string{`{"type":"system","subtype":"init","session_id":"s","model":"m"}`,
			`{"type":"result","subtype":"success","is_error":false,"session_id":"s","num_turns":1,"total_cost_usd":0.01,"result":"done","structured_output":%s}`}},
	{agent: "codex", dir: ".codex", variable: "CODEX_HOME", login: "auth.json",
		plant: []string{"config.toml", "hooks.json", "rules/default.rules", "AGENTS.md", "skills/x/SKILL.md", ".env"},
		answer: []string{`{"type":"thread.started","thread_id":"s"}`, `{"type":"item.completed","item":{"id":"i","type":"agent_message","text":%q}}`,
			`{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}`}},
	{agent: "gemini", dir: ".gemini", variable: "GEMINI_CLI_HOME", inHome: true, login: "oauth_creds.json",
		there: map[string]string{"extensions/x/gemini-extension.json": "{}\n"},
		plant: []string{"settings.json", "trusted_hooks.json", "extensions/x/gemini-extension.json", "extensions/y/gemini-extension.json", "policies/x.toml", "GEMINI.md", ".env"},
		answer: []string{`{"type":"init","session_id":"s","model":"m"}`, `{"type":"message","role":"assistant","content":%q}`,
			`{"type":"result","status":"success","stats":{"input":1,"output_tokens":1}}`}},
}

// loginWith returns a login file with a refresh token, in the format of the program.
func (o *ownDir) loginWith(token string) string {
	return map[string]string{
		"claude": `{"claudeAiOauth":{"accessToken":"a","refreshToken":"` + token + `","expiresAt":1,"scopes":["user:inference"]}}`,
		"codex":  `{"OPENAI_API_KEY":null,"tokens":{"id_token":"i","access_token":"a","refresh_token":"` + token + `"},"last_refresh":"2026-01-01T00:00:00Z"}`,
		"gemini": `{"access_token":"a","refresh_token":"` + token + `","expiry_date":1}`,
	}[o.agent]
}

func (o *ownDir) report() string { return "app/" + o.agent + ".txt" }

// main imitates the agent in a run. It renews its login, and leaves everything that it can for
// the person's next session.
func (o *ownDir) main() int {
	prompt, err := io.ReadAll(os.Stdin)
	answer := `{"verdict": "pass", "report": "as asked", "issues": []}`
	if err == nil && !strings.HasPrefix(string(prompt), "# verify") {
		answer, err = `{"summary": "done"}`, o.work()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, line := range o.answer {
		if strings.Contains(line, "%") {
			line = fmt.Sprintf(line, answer)
		}
		fmt.Println(line)
	}
	return 0
}

func (o *ownDir) work() error {
	w, err := readWorld()
	if err != nil {
		return err
	}
	own := filepath.Join(os.Getenv("HOME"), o.dir)
	if moved := os.Getenv(o.variable); moved != "" && o.inHome {
		own = filepath.Join(moved, o.dir)
	} else if moved != "" {
		own = moved
	}
	text, err := os.ReadFile(filepath.Join(own, o.login))
	if err != nil {
		return fmt.Errorf("no login: %w", err)
	}
	if string(text) != o.loginWith("old") {
		return fmt.Errorf("the login is %q", text)
	}
	if err := os.WriteFile(filepath.Join(own, o.login), []byte(o.loginWith("renewed")), 0o600); err != nil {
		return err
	}
	found := "nothing"
	for _, dir := range []string{filepath.Join(w.Home, o.dir), filepath.Join(os.Getenv("HOME"), o.dir), own} {
		for _, name := range o.plant {
			leave(filepath.Join(dir, name))
		}
		if text, err := os.ReadFile(filepath.Join(dir, oldSession)); err == nil {
			found = string(text)
		}
	}
	return os.WriteFile(o.report(), []byte(found), 0o644)
}

// leave tries several ways to create something at a path. The test checks from outside which of
// them failed.
func leave(path string) {
	os.MkdirAll(filepath.Dir(path), 0o700)
	os.WriteFile(path, []byte("planted"), 0o600)
	draft := filepath.Join(filepath.Dir(path), "draft")
	if os.WriteFile(draft, []byte("planted"), 0o600) == nil {
		os.Rename(draft, path)
	}
	if os.Symlink("/etc/passwd", draft) == nil {
		os.Rename(draft, path+".link")
	}
}

// An agent of a run can leave only a renewed login in the directory that the person's next
// session uses.
func TestOwnDirectory(t *testing.T) {
	for _, l := range levels() {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, l)
			plan := "tasks:\n"
			for _, o := range ownDirs {
				plan += fmt.Sprintf("  - {name: %s, agent: %s, prompt: Leave something., writes: [%s]}\n", o.agent, o.agent, o.report())
				s.putOwn(&o)
			}
			config := "gate: {allowed_write_paths: [\".\"]}\nagent: {name: claude, attempts: 1, timeout: 15m, sandbox: prefer}\nrun: {commit: off}\n"
			if l.off {
				config = strings.Replace(config, "prefer", "off", 1)
			}
			for path, text := range map[string]string{"plan.yaml": plan, "lockkeeper.yaml": config} {
				must(t, os.WriteFile(filepath.Join(s.w.Root, path), []byte(text), 0o644))
			}
			s.own(s.w.Home)
			s.env[0] = "PATH=" + filepath.Join(s.dir, "bin") + ":" + os.Getenv("PATH")
			before := s.ownFiles()
			said := s.run()
			after := s.ownFiles()
			for _, o := range ownDirs {
				login := filepath.Join(o.dir, o.login)
				if after[login] != o.loginWith("renewed") {
					t.Errorf("the renewed login of %s did not arrive: %q\n%s", o.agent, after[login], said)
				}
				delete(before, login)
				delete(after, login)
				read, err := os.ReadFile(filepath.Join(s.w.Root, o.report()))
				if found := strings.Contains(string(read), s.w.Secret); err != nil || found != l.off {
					t.Errorf("%s read the transcript of another session: %v, %v\n%s", o.agent, found, err, said)
				}
				if planted := filepath.Join(o.dir, o.plant[0]); l.off && after[planted] != "planted" {
					t.Errorf("%s: it fails outside of a sandbox, so it proves nothing", planted)
				}
			}
			if !l.off && !maps.Equal(before, after) {
				for _, path := range slices.Sorted(maps.Keys(after)) {
					if was, there := before[path]; !there || was != after[path] {
						t.Errorf("%s was %q, is %q", path, was, after[path])
					}
				}
				t.Errorf("there were %d files, and are %d", len(before), len(after))
			}
		})
	}
}

// putOwn creates the directory of an agent and a program with its name.
func (s *scene) putOwn(o *ownDir) {
	s.t.Helper()
	bin := filepath.Join(s.dir, "bin")
	must(s.t, os.MkdirAll(bin, 0o755), os.Symlink(s.program, filepath.Join(bin, o.agent)))
	files := map[string]string{o.login: o.loginWith("old"), oldSession: s.w.Secret}
	maps.Copy(files, o.there)
	for name, text := range files {
		file := filepath.Join(s.w.Home, o.dir, name)
		must(s.t, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600))
	}
}

// ownFiles returns the person's files in the directories of agents.
func (s *scene) ownFiles() map[string]string {
	s.t.Helper()
	list := map[string]string{}
	for _, top := range []string{".claude.json", ".claude", ".codex", ".gemini"} {
		err := filepath.WalkDir(filepath.Join(s.w.Home, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, _ := filepath.Rel(s.w.Home, path) // cannot fail: path is below Home
			if d.Type()&fs.ModeSymlink != 0 {
				list[name], err = os.Readlink(path)
				return err
			}
			text, err := os.ReadFile(path)
			list[name] = string(text)
			return err
		})
		must(s.t, err)
	}
	return list
}
