package enrol_test

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"lockkeeper"
	"lockkeeper/internal/agent/enrol"
)

var update = flag.Bool("update", false, "write what is planned into the golden files")

var named = enrol.Program{Shell: "lockkeeper", Path: "lockkeeper"}

const golden = "want.diff"

// site returns a codebase with these files.
func site(t *testing.T, files ...txtar.File) enrol.Site {
	t.Helper()
	dir := t.TempDir()
	s := enrol.Site{Root: filepath.Join(dir, "root"), Records: filepath.Join(dir, "records"), Env: func(name string) (string, bool) {
		return map[string]string{"HOME": filepath.Join(dir, "home"), "PATH": filepath.Join(dir, "bin")}[name], true
	}}
	if err := os.MkdirAll(s.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		write(t, filepath.Join(s.Root, f.Name), string(f.Data))
	}
	return s
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// all returns every file and directory below the root.
func all(t *testing.T, s enrol.Site) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(s.Root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			out[name] = "directory"
			return err
		}
		text, err := os.ReadFile(name)
		info, _ := d.Info()
		out[name] = info.Mode().String() + " " + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is\n%q\nwant\n%q", name, got[name], text)
		}
	}
	for name := range got {
		if _, known := want[name]; !known {
			t.Errorf("%s is there", name)
		}
	}
}

func host(t *testing.T, name string) enrol.Host {
	t.Helper()
	i := slices.IndexFunc(enrol.Hosts(), func(h enrol.Host) bool { return h.Name == name })
	if i < 0 {
		t.Fatalf("no host is called %s", name)
	}
	return enrol.Hosts()[i]
}

func plan(t *testing.T, s enrol.Site, h enrol.Host) *enrol.Enrolment {
	t.Helper()
	p, err := s.Plan(h, named)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t *testing.T, p *enrol.Enrolment, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func diffs(p *enrol.Enrolment) string {
	var text strings.Builder
	for _, e := range p.Edits {
		text.WriteString(e.Diff())
	}
	return text.String()
}

// Enrolling changes the files of a host exactly as the golden diffs show, for any previous text.
// Enrolling again changes nothing, and undoing restores every byte.
//
// shows: DL-72 DL-77 DL-82
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(text)
			var want string
			var files []txtar.File
			for _, f := range a.Files {
				if f.Name == golden {
					want = string(f.Data)
				} else {
					files = append(files, f)
				}
			}
			s := site(t, files...)
			first, _, _ := strings.Cut(filepath.Base(name), "-")
			h := host(t, first)
			before := all(t, s)
			p := plan(t, s, h)
			same(t, all(t, s), before)
			if got := diffs(p); got != want {
				if !*update {
					t.Errorf("planned is\n%s\nwant\n%s", got, want)
				}
				a.Files = append(files, txtar.File{Name: golden, Data: []byte(got)})
				if *update {
					write(t, name, string(txtar.Format(a)))
				}
			}
			apply(t, p, nil)
			if st := s.Status(h); st.Fault != nil || !st.Enrolled || st.Before() == nil || st.Before().Differs != "" || st.Before().Doubt == "" && st.Lacking() != nil {
				t.Errorf("it stands so: %+v", st)
			}
			if st := s.Status(h); st.Before().Doubt == "" && (st.Below() != nil || st.Anywhere() == nil) {
				t.Errorf("a session that starts in a subdirectory lacks %v", st.Below())
			}
			if again := plan(t, s, h); len(again.Edits) > 0 {
				t.Errorf("a second time there is\n%s", diffs(again))
			}
			undo, err := s.Undo(h, true)
			apply(t, undo, err)
			same(t, all(t, s), before)
			if st := s.Status(h); st.Enrolled {
				t.Error("it is still enrolled")
			}
		})
	}
}

// Undoing removes our text from a file that a person edited since, and keeps the edit.
func TestUndoAfterAnEdit(t *testing.T) {
	for _, h := range enrol.Hosts() {
		t.Run(h.Name, func(t *testing.T) {
			s := site(t)
			p := plan(t, s, h)
			apply(t, p, nil)
			settings := filepath.Join(s.Root, p.Edits[0].Path)
			text, err := os.ReadFile(settings)
			if err != nil {
				t.Fatal(err)
			}
			write(t, settings, strings.Replace(string(text), "{\n", "{\n  \"mine\": [1, 2],\n", 1))
			document := filepath.Join(s.Root, p.Edits[len(p.Edits)-1].Path)
			text, err = os.ReadFile(document)
			if err != nil {
				t.Fatal(err)
			}
			write(t, document, "# Mine\n\n"+string(text)+"\nMore.\n")
			undo, err := s.Undo(h, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range undo.Edits {
				if edited := e.File == settings || e.File == document; edited != strings.Contains(e.Note, "edited since") {
					t.Errorf("%s: %q", e.Path, e.Note)
				}
			}
			apply(t, undo, nil)
			want := map[string]string{s.Root: "directory", document: "-rw-r--r-- # Mine\n\nMore.\n"}
			if filepath.Ext(settings) == ".json" { // a script of ours goes as a whole
				want[filepath.Dir(settings)], want[settings] = "directory", "-rw-r--r-- {\n  \"mine\": [1, 2]\n}\n"
			}
			same(t, all(t, s), want)
		})
	}
}

// Enrolling again restores removed hooks, and undoing still restores the original content.
func TestEnrolAgain(t *testing.T) {
	s := site(t, txtar.File{Name: ".claude/settings.json", Data: []byte("{ \"model\": \"opus\" }")})
	before := all(t, s)
	h := host(t, "claude")
	apply(t, plan(t, s, h), nil)
	settings := filepath.Join(s.Root, ".claude/settings.json")
	write(t, settings, "{ \"model\": \"haiku\" }")
	home, _ := s.Env("HOME")
	if err := os.Remove(filepath.Join(home, ".claude/settings.json")); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(h); st.Below() == nil || st.Anywhere() != nil {
		t.Errorf("a session that starts in a subdirectory finds %+v", st)
	}
	if st := s.Status(h); !st.Enrolled || st.Before() != nil || len(st.Lacking()) != 7 {
		t.Errorf("%+v", st)
	}
	p := plan(t, s, h)
	if len(p.Edits) != 2 {
		t.Fatal(diffs(p))
	}
	apply(t, p, nil)
	undo, err := s.Undo(h, true)
	apply(t, undo, err)
	before[settings] = strings.Replace(before[settings], "opus", "haiku", 1)
	same(t, all(t, s), before)
}

// If a settings file is a link, the link stays and its target is changed.
func TestLinkedSettings(t *testing.T) {
	s := site(t)
	elsewhere := filepath.Join(t.TempDir(), "dotfiles.json")
	write(t, elsewhere, "{}\n")
	link := filepath.Join(s.Root, ".claude/settings.json")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	h := host(t, "claude")
	apply(t, plan(t, s, h), nil)
	if to, err := os.Readlink(link); err != nil || to != elsewhere {
		t.Error(to, err)
	}
	if text, err := os.ReadFile(elsewhere); err != nil || !bytes.Contains(text, []byte("lockkeeper hook claude-code; fi || {")) {
		t.Errorf("%s %v", text, err)
	}
	undo, err := s.Undo(h, true)
	apply(t, undo, err)
	if text, err := os.ReadFile(elsewhere); err != nil || string(text) != "{}\n" {
		t.Errorf("%s %v", text, err)
	}
	if err := os.Remove(elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Plan(h, named); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("a link that leads nowhere: %v", err)
	}
}

// A file that cannot be parsed or written is refused with its line, and nothing is changed.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct{ host, file, text, want string }{
		"broken JSON":        {"claude", ".claude/settings.json", "{\n  \"a\": 1,\n  \"hooks\": {,\n}", ".claude/settings.json:3:13"},
		"a trailing comma":   {"claude", ".mcp.json", "{\n  \"a\": 1,\n}", ".mcp.json:3:1"},
		"an end too soon":    {"gemini", ".gemini/settings.json", "{\"a\": [1", "unexpected EOF"},
		"two values":         {"claude", ".mcp.json", "{}\n{}", ".mcp.json:2:1"},
		"no object":          {"claude", ".claude/settings.json", "[]", "the file is not a JSON object"},
		"hooks of a sort":    {"claude", ".claude/settings.json", "{\"hooks\": []}", "hooks is not an object"},
		"an event of a sort": {"claude", ".claude/settings.json", "{\"hooks\": {\"Stop\":\n {}}}", ".claude/settings.json:2:2"},
		"broken TOML":        {"codex", ".codex/config.toml", "model = \"x\"\nthis is\n", ".codex/config.toml:2:"},
		"a closed table":     {"codex", ".codex/config.toml", "mcp_servers = {a = {command = \"a\"}}\n", ".codex/config.toml"},
		"a word":             {"claude", ".mcp.json", "{\"a\": nil}", "invalid literal: nil"},
		"a long comment":     {"gemini", ".gemini/settings.json", "{ /* \n", "parsing comment: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s := site(t, txtar.File{Name: test.file, Data: []byte(test.text)})
			before := all(t, s)
			_, err := s.Plan(host(t, test.host), named)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.file) {
				t.Errorf("%v", err)
			}
			same(t, all(t, s), before)
		})
	}
	t.Run("read-only", func(t *testing.T) {
		s := site(t, txtar.File{Name: "CLAUDE.md", Data: []byte("x\n")})
		if err := os.Chmod(filepath.Join(s.Root, "CLAUDE.md"), 0o444); err != nil {
			t.Fatal(err)
		}
		before := all(t, s)
		if _, err := s.Plan(host(t, "claude"), named); err == nil || !strings.Contains(err.Error(), "CLAUDE.md is read-only") {
			t.Errorf("%v", err)
		}
		same(t, all(t, s), before)
	})
	t.Run("changed meanwhile", func(t *testing.T) {
		s := site(t)
		p := plan(t, s, host(t, "claude"))
		write(t, filepath.Join(s.Root, "CLAUDE.md"), "another program was faster\n")
		before := all(t, s)
		if err := p.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
			t.Errorf("%v", err)
		}
		same(t, all(t, s), before)
	})
	t.Run("cannot be written", func(t *testing.T) {
		s := site(t)
		p := plan(t, s, host(t, "claude"))
		before := all(t, s)
		p.Edits[3].File = filepath.Join(s.Root, ".mcp.json", "CLAUDE.md") // a file is in the place of the directory
		if err := p.Apply(t.Context()); err == nil {
			t.Error("it was applied")
		}
		after := all(t, s)
		delete(after, filepath.Join(s.Root, ".claude"))
		same(t, after, before)
	})
}

// A host that is configured to run no hooks has none, even if its files contain some.
func TestSwitchedOff(t *testing.T) {
	for name, test := range map[string]struct{ host, file, text string }{
		"claude": {"claude", ".claude/settings.local.json", `{"disableAllHooks": true}`},
		"codex":  {"codex", ".codex/config.toml", "[features]\nhooks = false\n"},
		"gemini": {"gemini", ".gemini/settings.json", `{"hooksConfig": {"enabled": false}}`},
	} {
		s := site(t, txtar.File{Name: test.file, Data: []byte(test.text)})
		h := host(t, test.host)
		apply(t, plan(t, s, h), nil)
		if st := s.Status(h); !strings.HasSuffix(st.Off, " in "+test.file) {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// Hosts start our program by its name if PATH finds it.
func TestFindProgram(t *testing.T) {
	s := site(t)
	if p, err := s.Find(`/opt/my "tools"/lockkeeper`); err != nil || p.Shell != `PATH="$PATH:/opt/my \"tools\"" lockkeeper` || p.Path != `/opt/my "tools"/lockkeeper` {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := s.Find("/opt/lk"); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("%v", err)
	}
	path, _ := s.Env("PATH")
	write(t, filepath.Join(path, "lockkeeper"), "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(path, "lockkeeper"), 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Find("/opt/lk"); err != nil || p != named {
		t.Errorf("%+v %v", p, err)
	}
}
