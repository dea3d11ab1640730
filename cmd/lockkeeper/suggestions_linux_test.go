package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each command that a refusal suggests works as printed, in the session that was refused: its hooks
// let it pass, and it succeeds.
//
// shows: GP-5
func TestSuggestionsWork(t *testing.T) {
	t.Parallel()
	w := newCrowd(t)
	a, b := w.actors[0], w.actors[1]
	edit := func(file string) map[string]any {
		return map[string]any{"file_path": filepath.Join(w.dir, file), "old_string": "a", "new_string": "b"}
	}
	edits := func(who *actor, file string) {
		if !w.hook(who, "PreToolUse", "Edit", edit(file)) {
			t.Fatal(w.said)
		}
		w.grow(file, who.name+" edits")
		w.hook(who, "PostToolUse", "Edit", edit(file))
	}
	w.write("lockkeeper.yaml", "gate: {allowed_write_paths: [file0]}\n")
	w.write("notes", "of a person\n")
	w.write("patch", "--- a/file0\n+++ b/file0\n@@ -1 +1,2 @@\n first 0\n+deferred\n")
	w.write("big", strings.Repeat("x", 33<<20))
	edits(a, "file0")
	shell := func(command string) map[string]any { return map[string]any{"command": command} }
	suggested := map[string]bool{}
	for _, refused := range []struct {
		name, tool string
		input      map[string]any
	}{
		{"held", "Edit", edit("file0")},
		{"unread", "Write", map[string]any{"file_path": filepath.Join(w.dir, "file1"), "content": "x"}},
		{"staged", "Bash", shell("git add -A")},
		{"committed", "Bash", shell("git commit -qam x")},
		{"rewritten", "Bash", shell("git checkout -q -b other")},
		{"stashed", "Bash", shell("git stash -q")},
		{"removed", "Bash", shell("rm notes")},
		{"not kept", "Bash", shell("rm $(cat file5)")},
		{"a person's", "Bash", shell("lockkeeper off 30m")},
		{"protected", "Bash", shell("echo x > .git/config")},
	} {
		edits(b, "file4") // otherwise it has nothing to commit
		b.calls++
		if w.hook(b, "PreToolUse", refused.tool, refused.input) {
			t.Errorf("%s: %v is not refused", refused.name, refused.input)
			continue
		}
		text := strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\u003c`, "<").Replace(w.said)
		_, next, _ := strings.Cut(text, "\nnext: ")
		next, _, _ = strings.Cut(next, "\n")
		next, _, _ = strings.Cut(next, `"}`)
		for command := range strings.SplitSeq(next, " | ") {
			if isAdvice(command) {
				continue
			}
			suggested[strings.Join(strings.Fields(command)[:2], " ")] = true
			b.calls++
			if !w.hook(b, "PreToolUse", "Bash", shell(command)) {
				t.Errorf("%s: the hook refuses %q: %s", refused.name, command, w.said)
				continue
			}
			code, said := w.run(b, command)
			others := code == 5 && command == "lockkeeper gate changes" // others hold changes
			if exists := strings.Contains(said, "already exists"); code != 0 && !others && !exists {
				t.Errorf("%s: %q ended with %d: %s", refused.name, command, code, said)
			}
			w.hook(b, "PostToolUse", "Bash", shell(command))
		}
	}
	for _, command := range []string{"lockkeeper why", "lockkeeper defer", "lockkeeper commit", "lockkeeper gate", "lockkeeper status", "git worktree", "git status", "ls -ld"} {
		if !suggested[command] {
			t.Errorf("%s is not suggested: %v", command, suggested)
		}
	}
}

// isAdvice reports whether a suggestion is no command of a shell.
func isAdvice(text string) bool {
	return slices.ContainsFunc([]string{"read ", "a person, at a terminal: ", "use git", "let a person "}, func(head string) bool { return strings.HasPrefix(text, head) })
}
