package owndir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper/internal/agent/owndir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A person is the home directory of a user of the agents.
type person struct {
	t    testing.TB
	base string
	env  map[string]string
	said []string
}

func newPerson(t testing.TB, files map[string]string) *person {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	p := &person{t: t, base: base, env: map[string]string{"HOME": filepath.Join(base, "home")}}
	for name, text := range files {
		p.write(name, text)
	}
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *person) at(name string) string { return filepath.Join(p.base, name) }

func (p *person) write(name, text string) {
	p.t.Helper()
	must(p.t, os.MkdirAll(filepath.Dir(p.at(name)), 0o700))
	must(p.t, os.WriteFile(p.at(name), []byte(text), 0o600))
}

// read returns the content of a file, or "" if it does not exist.
func (p *person) read(name string) string {
	text, _ := os.ReadFile(p.at(name))
	return string(text)
}

// await waits until a file has a content.
func (p *person) await(name, text string) {
	p.t.Helper()
	for end := time.Now().Add(2 * time.Minute); p.read(name) != text; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%s is %q", name, p.read(name))
		}
	}
}

// open makes a copy below a name.
func (p *person) open(agent, name string) *owndir.Copy {
	p.t.Helper()
	d := owndir.Of(agent, func(variable string) (string, bool) { v, is := p.env[variable]; return v, is },
		p.at("state/lock"), func(dir string) bool { return !strings.Contains(dir, "codebase") })
	c, err := d.Open(p.t.Context(), p.at(name), func(err error) { p.said = append(p.said, err.Error()) })
	must(p.t, err)
	return c
}

func (p *person) close(c *owndir.Copy) {
	p.t.Helper()
	must(p.t, c.Close(p.t.Context()))
}

func codex(token string) string {
	return `{"OPENAI_API_KEY": null, "tokens": {"access_token": "a", "refresh_token": "` + token + `"}}`
}

// A copy has the person's login and settings, and no files of other sessions.
func TestCopy(t *testing.T) {
	everything := map[string]string{
		"home/.claude/.credentials.json": "{}", "home/.claude.json": "{1}", "home/.claude/settings.json": "{2}", "home/.claude/hooks/x.sh": "3", "home/.claude/projects/-a/s.jsonl": "secret",
		"home/.claude/history.jsonl": "secret", "home/.codex/auth.json": codex("old"), "home/.codex/config.toml": "4", "home/.codex/work.config.toml": "5", "home/.codex/sessions/x.jsonl": "secret",
		"home/.gemini/oauth_creds.json": "{}", "home/.gemini/settings.json": "{6}", "home/.gemini/tmp/x/chat.json": "secret", "home/.gemini/extensions/x/y": "7", "home/.gemini/extensions/enabled.json": "8", "dotfiles/z/y": "12",
		"elsewhere/settings.json": "{8}", "elsewhere/.claude.json": "{9}", "elsewhere/.gemini/GEMINI.md": "10", "home/codebase/settings.json": "11",
	}
	for name, test := range map[string]struct {
		agent, variable, moved string
		value                  string // the value of the variable, in the copy
		want                   map[string]string
		read                   []string
	}{
		"claude": {agent: "claude", variable: "CLAUDE_CONFIG_DIR", value: "own/.claude", read: []string{"home/.claude/hooks"},
			want: map[string]string{".claude/.credentials.json": "{}", ".claude/.claude.json": "{1}", ".claude/settings.json": "{2}", ".claude/hooks/x.sh": "3"}},
		"claude moved": {agent: "claude", variable: "CLAUDE_CONFIG_DIR", moved: "elsewhere", value: "own/.claude",
			want: map[string]string{".claude/settings.json": "{8}", ".claude/.claude.json": "{9}"}},
		"claude in the codebase": {agent: "claude", variable: "CLAUDE_CONFIG_DIR", moved: "home/codebase", value: "own/.claude"},
		"codex": {agent: "codex", variable: "CODEX_HOME", value: "own/.codex",
			want: map[string]string{".codex/auth.json": codex("old"), ".codex/config.toml": "4", ".codex/work.config.toml": "5"}},
		"gemini": {agent: "gemini", variable: "GEMINI_CLI_HOME", value: "own", read: []string{"home/.gemini/extensions", "dotfiles/z"},
			want: map[string]string{".gemini/oauth_creds.json": "{}", ".gemini/settings.json": "{6}", ".gemini/extensions/x/y": "7", ".gemini/extensions/enabled.json": "8", ".gemini/extensions/z/y": "12"}},
		"gemini moved": {agent: "gemini", variable: "GEMINI_CLI_HOME", moved: "elsewhere", value: "own", want: map[string]string{".gemini/GEMINI.md": "10"}},
		"not there":    {agent: "codex", variable: "CODEX_HOME", moved: "nowhere", value: "own/.codex"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, everything)
			must(t, os.Symlink(p.at("dotfiles/z"), p.at("home/.gemini/extensions/z")))
			must(t, os.Symlink(p.at("missing"), p.at("home/.gemini/extensions/missing")))
			must(t, syscall.Mkfifo(p.at("home/.codex/hooks.json"), 0o600))
			p.write("home/.gemini/extensions/program", "large")
			must(t, os.Truncate(p.at("home/.gemini/extensions/program"), 100<<20))
			if test.moved != "" {
				p.env[test.variable] = p.at(test.moved)
			}
			c := p.open(test.agent, "own")
			defer p.close(c)
			if got, want := c.Environ([]string{"A=b", test.variable + "=old"}), []string{"A=b", test.variable + "=" + p.at(test.value)}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			var read []string
			for _, dir := range test.read {
				read = append(read, p.at(dir))
			}
			if c.Write != p.at("own") || !slices.Equal(c.Read, read) {
				t.Errorf("it writes %s and reads %s", c.Write, c.Read)
			}
			for file, text := range test.want {
				if got := p.read("own/" + file); got != text {
					t.Errorf("%s is %q", file, got)
				}
			}
			if entries, err := os.ReadDir(p.at("own")); err != nil || len(entries) != 1 {
				t.Errorf("%v, %v", entries, err)
			}
			if to, err := os.Readlink(p.at("own/.gemini/extensions/program")); name == "gemini" && (err != nil || to != p.at("home/.gemini/extensions/program")) {
				t.Errorf("a large file is not linked: %q, %v", to, err)
			}
			top := map[string]bool{}
			for file := range test.want {
				name, _, _ := strings.Cut(strings.TrimPrefix(file, "."+test.agent+"/"), "/")
				top[name] = true
			}
			entries, err := os.ReadDir(filepath.Join(p.at("own"), "."+test.agent))
			if must(t, err); len(entries) != len(top) {
				t.Errorf("%v", entries)
			}
		})
	}
	if owndir.Of("command", nil, "", nil) != nil {
		t.Error("another command has a directory of its own")
	}
}

// A login that a call renews is saved to the person's directory at once, however the program
// writes it. No other file of the call is saved.
func TestRenewed(t *testing.T) {
	p := newPerson(t, map[string]string{"dotfiles/auth.json": codex("old"), "home/.codex/config.toml": "a"})
	must(t, os.Symlink(p.at("dotfiles/auth.json"), p.at("home/.codex/auth.json")))
	must(t, os.Chmod(p.at("dotfiles/auth.json"), 0o640))
	c := p.open("codex", "own")
	p.write("own/.codex/auth.json", codex("in place"))
	p.await("home/.codex/auth.json", codex("in place"))
	p.write("own/.codex/draft", codex("renamed"))
	must(t, os.Rename(p.at("own/.codex/draft"), p.at("own/.codex/auth.json")))
	p.await("home/.codex/auth.json", codex("renamed"))
	p.write("own/.codex/config.toml", "planted")
	p.write("own/.codex/hooks.json", "planted")
	p.close(c)
	info, err := os.Lstat(p.at("home/.codex/auth.json"))
	if must(t, err); info.Mode()&os.ModeSymlink == 0 || p.read("dotfiles/auth.json") != codex("renamed") {
		t.Error("the link is gone")
	}
	info, err = os.Lstat(p.at("dotfiles/auth.json"))
	if must(t, err); info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %s", info.Mode())
	}
	entries, err := os.ReadDir(p.at("home/.codex"))
	if must(t, err); len(entries) != 2 || p.read("home/.codex/config.toml") != "a" || len(p.said) > 0 {
		t.Errorf("%v, %q", entries, p.said)
	}
}

// An invalid login is not saved, and the reason is reported.
func TestNotRenewed(t *testing.T) {
	for name, test := range map[string]struct {
		put  func(p *person, file string) error
		said string
	}{
		"a link": {func(p *person, file string) error {
			p.write("secret.json", codex("of another user"))
			return os.Symlink(p.at("secret.json"), file)
		}, "not a regular file"},
		"a link within": {func(p *person, file string) error {
			p.write("own/.codex/other.json", codex("other"))
			return os.Symlink("other.json", file)
		}, "not a regular file"},
		"a pipe":      {func(p *person, file string) error { return syscall.Mkfifo(file, 0o600) }, "not a regular file"},
		"a directory": {func(p *person, file string) error { return os.Mkdir(file, 0o700) }, "not a regular file"},
		"1 GB": {func(p *person, file string) error {
			p.write("own/draft", codex("large"))
			must(p.t, os.Truncate(p.at("own/draft"), 1<<30))
			return os.Rename(p.at("own/draft"), file)
		}, "larger than"},
		"no JSON":     {func(p *person, file string) error { return os.WriteFile(file, []byte("planted"), 0o600) }, "not JSON"},
		"no object":   {func(p *person, file string) error { return os.WriteFile(file, []byte(`["planted"]`), 0o600) }, "no refresh token"},
		"two objects": {func(p *person, file string) error { return os.WriteFile(file, []byte(codex("a")+codex("b")), 0o600) }, "not JSON"},
		"logged out":  {func(p *person, file string) error { return os.WriteFile(file, []byte(codex("")), 0o600) }, "no refresh token"},
		"an API key": {func(p *person, file string) error {
			return os.WriteFile(file, []byte(`{"OPENAI_API_KEY": "sk"}`), 0o600)
		}, "no refresh token"},
		"nothing": {func(p *person, file string) error { return nil }, "no such file"},
		"another directory": {func(p *person, file string) error {
			must(p.t, os.Rename(p.at("own/.codex"), p.at("own/moved")))
			p.write("secrets/auth.json", codex("of another user"))
			return os.Symlink(p.at("secrets"), p.at("own/.codex"))
		}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, map[string]string{"home/.codex/auth.json": codex("old")})
			c := p.open("codex", "own")
			file := p.at("own/.codex/auth.json")
			must(t, os.Remove(file))
			must(t, test.put(p, file))
			p.close(c)
			if got := p.read("home/.codex/auth.json"); got != codex("old") {
				t.Errorf("the login is %.100q", got)
			}
			if len(p.said) != 1 || !strings.Contains(p.said[0], test.said) {
				t.Errorf("it says %q", p.said)
			}
		})
	}
}

// A login is saved only if there was a renewable one before: a call never logs the person in.
func TestNoLogin(t *testing.T) {
	for name, before := range map[string]string{"none": "", "an API key": `{"OPENAI_API_KEY": "sk"}`, "another form": "encrypted"} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, map[string]string{"home/.codex/config.toml": ""})
			if before != "" {
				p.write("home/.codex/auth.json", before)
			}
			c := p.open("codex", "own")
			if got := p.read("own/.codex/auth.json"); got != before {
				t.Errorf("the call has %q", got)
			}
			p.write("own/.codex/auth.json", codex("planted"))
			p.close(c)
			if got := p.read("home/.codex/auth.json"); got != before || len(p.said) > 0 {
				t.Errorf("%q, %q", got, p.said)
			}
		})
	}
}

// A login in the codebase is not used, even through a link, because it would be changed without
// the gate.
func TestLoginInTheCodebase(t *testing.T) {
	p := newPerson(t, map[string]string{"codebase/auth.json": codex("old"), "home/.codex/config.toml": ""})
	must(t, os.Symlink(p.at("codebase/auth.json"), p.at("home/.codex/auth.json")))
	c := p.open("codex", "own")
	p.write("own/.codex/auth.json", codex("renewed"))
	p.close(c)
	if got := p.read("codebase/auth.json"); got != codex("old") {
		t.Errorf("the login is %q", got)
	}
}

// A login that the person renewed is not overwritten, and the calls get it.
func TestPersonRenews(t *testing.T) {
	p := newPerson(t, map[string]string{"home/.codex/auth.json": codex("old")})
	c := p.open("codex", "own")
	p.write("home/.codex/auth.json", codex("by the person"))
	p.await("own/.codex/auth.json", codex("by the person"))
	p.write("home/.codex/auth.json", "{") // like a program that has not finished writing
	p.write("own/.codex/auth.json", codex("by the call"))
	p.write("home/.codex/auth.json", codex("by the person again"))
	p.close(c)
	if got := p.read("home/.codex/auth.json"); got != codex("by the person again") || len(p.said) > 0 {
		t.Errorf("%q, %q", got, p.said)
	}
	c = p.open("codex", "second")
	must(t, os.Remove(p.at("home/.codex/auth.json")))
	p.write("second/.codex/auth.json", codex("by the call"))
	p.close(c)
	if got := p.read("home/.codex/auth.json"); got != "" || len(p.said) > 0 {
		t.Errorf("the person is logged in again: %q, %q", got, p.said)
	}
}

// Concurrent calls share the login that one of them renewed, and no login is lost.
func TestConcurrentCalls(t *testing.T) {
	const calls, rounds = 4, 20
	p := newPerson(t, map[string]string{"home/.codex/auth.json": codex("old")})
	var copies []*owndir.Copy
	name := func(i int) string { return fmt.Sprintf("own%d/.codex/auth.json", i) }
	for i := range calls {
		copies = append(copies, p.open("codex", fmt.Sprintf("own%d", i)))
	}
	for round := range rounds {
		renewed := codex(fmt.Sprint(round))
		p.write(name(round%calls), renewed)
		for i := range calls {
			p.await(name(i), renewed)
		}
		p.await("home/.codex/auth.json", renewed)
	}
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() { p.write(name(i), codex(fmt.Sprint("at once ", i))) })
	}
	all.Wait()
	for _, c := range copies {
		p.close(c)
	}
	last := p.read("home/.codex/auth.json")
	if !strings.Contains(last, "at once") || len(p.said) > 0 {
		t.Errorf("%q, %q", last, p.said)
	}
	later := p.open("codex", "later")
	if got := p.read("later/.codex/auth.json"); got != last {
		t.Errorf("%q", got)
	}
	p.close(later)
}

// BenchmarkCopy measures the time that a copy adds to the start of a call.
func BenchmarkCopy(b *testing.B) {
	files := map[string]string{"home/.codex/auth.json": codex("old"), "home/.codex/config.toml": strings.Repeat("a = 1\n", 100)}
	for i := range 50 {
		files[fmt.Sprintf("home/.codex/skills/%d/SKILL.md", i)] = "skill"
	}
	p := newPerson(b, files)
	for i := 0; b.Loop(); i++ {
		p.close(p.open("codex", fmt.Sprint("own", i)))
	}
}
