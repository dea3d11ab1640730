package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func testRoot(t *testing.T) *cobra.Command {
	t.Helper()
	return root(&command.Program{IO: &term.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Dir: t.TempDir(), Now: time.Now}})
}

// every visits all visible commands.
func every(cmd *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			visit(sub)
			every(sub, visit)
		}
	}
}

func TestCommandsExplainThemselves(t *testing.T) {
	cmd := testRoot(t)
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.GroupID == "" && !sub.IsAdditionalHelpTopicCommand() {
			t.Errorf("%s has no group in the help", sub.CommandPath())
		}
	}
	nouns := []string{"who", "what", "which", "all", "every", "everything", "a", "the", "all"}
	every(cmd, func(sub *cobra.Command) {
		first, _, _ := strings.Cut(strings.ToLower(sub.Short), " ")
		if sub.Short == "" || slices.Contains(nouns, first) {
			t.Errorf("%s: %q does not begin with a verb", sub.CommandPath(), sub.Short)
		}
		if sub.Example == "" && !sub.IsAdditionalHelpTopicCommand() {
			t.Errorf("%s has no example", sub.CommandPath())
		}
	})
}

func TestExitCodesComeFromOneTable(t *testing.T) {
	text := exitCodesTopic().Long
	for _, exit := range command.Exits() {
		if !strings.Contains(text, "\n  "+exit.Code+" ") {
			t.Errorf("the topic has no exit code %s", exit.Code)
		}
	}
	for err, want := range map[error]int{
		&lockkeeper.InputError{}:         2,
		&lockkeeper.BlockedError{}:       3,
		&lockkeeper.LockTimeoutError{}:   4,
		&lockkeeper.LockViolationError{}: 5,
		&lockkeeper.NotHeldError{}:       1,
		os.ErrNotExist:                   1,
	} {
		if got := command.ExitCode(err); got != want {
			t.Errorf("%T ends with %d, not %d", err, got, want)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	for use, want := range map[string]string{
		"release GRANT":                               "GRANT",
		"upgrade GRANT PATH…":                         "GRANT, PATH",
		"why PATH | RESOURCE | HOLDER | GRANT | ITEM": "PATH RESOURCE HOLDER GRANT ITEM",
		"force-release GRANT --reason WHY":            "GRANT",
		"write --grant GRANT PATH <CONTENT":           "PATH",
		"redo UNIT[/BATCH] PHASE":                     "UNIT, PHASE",
		"exec -- COMMAND…":                            "COMMAND",
		"claim NAME|PATH… [-- COMMAND…]":              "NAME PATH, COMMAND",
		"acquire":                                     "",
	} {
		var got []string
		for _, place := range placeholders(use) {
			got = append(got, strings.Join(place, " "))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, not %q", use, got, want)
		}
	}
}

// No line of a manual page is a roff request by accident, and every command has a page.
func TestManualPages(t *testing.T) {
	cmd, dir := testRoot(t), t.TempDir()
	if err := writePages(t.Context(), cmd, dir); err != nil {
		t.Fatal(err)
	}
	every(cmd, func(sub *cobra.Command) {
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(sub.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(page)) {
			request, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if line[0] == '\'' || line[0] == '.' && !slices.Contains([]string{".TH", ".SH", ".nf", ".fi"}, request) {
				t.Errorf("%s: %q is a request", sub.CommandPath(), line)
			}
		}
	})
}
