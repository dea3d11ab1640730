package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockkeeper/internal/git/gittest"
)

const chapter = "Manuscript/Chapters/Chapter_05/Chapter_05"

// newBook returns a checkout of a book in which git refuses commits without a claim and
// records the claims after each commit. The agent is a script with an author's part of prompt 3.
func newBook(t *testing.T) checkout {
	t.Helper()
	c := newCheckout(t, map[string]string{chapter + ".md": "Call me Ismael.\n", chapter + "_chg.md": "- [ ] s/Ismael/Ishmael/\n"})
	if out, n := c.run("lockkeeper init book", "git add -A && git commit -qm book", "lockkeeper init --git-hook"); n != 3 {
		t.Fatal(out)
	}
	hook := filepath.Join(c.dir, ".git", "hooks", "post-commit")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho committed >>$STEPS; lockkeeper claim status >>$STEPS\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return c
}

// prompt3 returns the commands of prompt 3 on the page, with a given program as the agent.
func (c checkout) prompt3(agent string) string {
	c.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "author.md"))
	if err != nil {
		c.Fatal(err)
	}
	m := regexp.MustCompile("(?s)## Prompt 3, step by step.*?```sh\n(.*?)```").FindSubmatch(page)
	if m == nil {
		c.Fatal("docs/author.md shows no prompt 3")
	}
	bin := filepath.Join(filepath.Dir(c.dir), "bin")
	c.write("../bin/claude", "#!/bin/sh -e\n"+agent)
	if err := os.Chmod(filepath.Join(bin, "claude"), 0o755); err != nil {
		c.Fatal(err)
	}
	return "STEPS=" + c.stepsFile() + " PATH=" + bin + ":$PATH; export STEPS PATH\n" + string(m[1])
}

func (c checkout) stepsFile() string { return filepath.Join(filepath.Dir(c.dir), "steps") }

func (c checkout) steps() string {
	text, _ := os.ReadFile(c.stepsFile())
	return string(text)
}

// Prompt 3 claims the chapter, reads the change file, changes the chapter, updates the change
// file, commits under the claim, and releases the claim. Meanwhile no other instance gets it.
//
// shows: LM-28 LM-37 LM-38
func TestPrompt3(t *testing.T) {
	c := newBook(t)
	const author = `echo applied >>$STEPS
lockkeeper claim Chapter_05 --instance CLI-2 && exit 1
sed -i "$(sed -n 's/- \[ \] //p' ` + chapter + `_chg.md)" ` + chapter + `.md
sed -i 's/\[ \]/[x]/' ` + chapter + `_chg.md
lockkeeper claim status >>$STEPS
`
	out, n := c.run(c.prompt3(author))
	if n != 1 {
		t.Fatal(out)
	}
	steps := regexp.MustCompile(`(?s)^applied\nActive Locks:\n- Chapter_05: .*committed\nActive Locks:\n- Chapter_05: Locked .* by CLI-[0-9]+`)
	if !steps.MatchString(c.steps()) {
		t.Errorf("the steps were\n%s", c.steps())
	}
	if !strings.Contains(out, "nothing was claimed: Chapter_05 is claimed by CLI-") || !strings.Contains(out, "released: Chapter_05") {
		t.Errorf("it said\n%s", out)
	}
	if text := gittest.Run(t, c.dir, "show", "HEAD:"+chapter+".md", "HEAD:"+chapter+"_chg.md"); text != "Call me Ishmael.\n- [x] s/Ismael/Ishmael/\n" {
		t.Errorf("committed %q", text)
	}
	if text, n := c.run("lockkeeper claim Chapter_05 --instance CLI-2"); n != 1 {
		t.Errorf("afterwards: %s", text)
	}
}

// An agent that fails releases the claim and commits nothing. If the claim is released before
// the commit, another instance can claim the chapter, and git refuses the commit. Git also
// refuses a commit if nobody has claimed the chapter.
//
// shows: LM-20 LM-38
func TestPrompt3InAnotherOrder(t *testing.T) {
	const edit = "echo changed >" + chapter + ".md\n"
	c := newBook(t)
	if out, n := c.run(c.prompt3("echo half >" + chapter + ".md; exit 1\n")); n != 0 || !strings.Contains(out, "released: Chapter_05") || c.steps() != "" {
		t.Errorf("an agent that fails: %s\n%s", out, c.steps())
	}

	c = newBook(t)
	if out, n := c.run("lockkeeper claim --prompt 3 5\n" + edit + "lockkeeper unclaim Chapter_05"); n != 1 {
		t.Fatal(out)
	}
	other := c.begin("lockkeeper claim Chapter_05 --instance CLI-2 -- sh -c 'echo held; read go'", "held")
	if out, n := c.run("STEPS=" + c.stepsFile() + " git commit -am 'too late'"); n != 0 || c.steps() != "" || !strings.Contains(out, "others hold 1 changed path") {
		t.Errorf("released before the commit: %s\n%s", out, c.steps())
	}
	other.end()

	c = newBook(t)
	if out, n := c.run(edit, "STEPS="+c.stepsFile()+" git commit -am 'without a claim'"); n != 1 || c.steps() != "" || !strings.Contains(out, "no lock covers") {
		t.Errorf("without a claim: %s\n%s", out, c.steps())
	}
}

// All claims of a session have one id: the kind of its environment and the number of its
// process. Another session at the same time has another id.
//
// shows: LM-25
func TestInstanceOfASession(t *testing.T) {
	c := newBook(t)
	for kind, shell := range map[string]string{"CLI": "eval", "Desktop": "CLAUDECODE=1 CLAUDE_CODE_ENTRYPOINT=claude-desktop sh -c"} {
		claim := func(first, second string) (*background, string) {
			b := c.begin("echo $$; "+shell+" 'lockkeeper claim Chapter_"+first+"; lockkeeper claim Chapter_"+second+"; grep instance .locks/locks.json; read go; lockkeeper unclaim'; :", "")
			return b, kind + "-" + strings.TrimSpace(b.first)
		}
		one, first := claim("01", "02")
		two, second := claim("03", "04")
		for b, id := range map[*background]string{one: first, two: second} {
			out := b.end()
			for _, line := range []string{"claimed by " + id + ": Chapter_", "released: Chapter_"} {
				if !strings.Contains(out, line) {
					t.Errorf("%s: no %q in\n%s", kind, line, out)
				}
			}
			if n := strings.Count(out, `"`+id+`"`); n != 2 {
				t.Errorf("%s: %d entries of %s in\n%s", kind, n, id, out)
			}
		}
		if first == second {
			t.Errorf("two sessions are %s", first)
		}
	}
}
