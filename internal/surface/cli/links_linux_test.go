package cli_test

import (
	"os"
	"path/filepath"
	"testing"
)

// On a terminal, the command asks a person before it rewrites links. Inside an agent's environment, it does not
// ask and rewrites nothing.
//
// shows: LE-42 LE-45
func TestFixIsAskedFor(t *testing.T) {
	const before, after = "[plan](plan.md)\n", "[plan](archive/plan.md)\n"
	for name, c := range map[string]struct {
		answer string // empty: no question
		code   int
		shown  string
		want   string
	}{
		"agreed":  {answer: "y", code: 0, shown: "This rewrites 1 link in 1 document", want: after},
		"refused": {answer: "no", code: 1, shown: "not confirmed; nothing changed", want: before},
		"agent":   {code: 1, shown: "lockkeeper links --fix --yes, with the same options", want: before},
	} {
		t.Run(name, func(t *testing.T) {
			d := newConsole(t)
			readme := filepath.Join(d.dir, "README.md")
			if err := os.Mkdir(filepath.Join(d.dir, "archive"), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"README.md": before, "archive/plan.md": "", "lockkeeper.yaml": "gate: {allowed_write_paths: [.]}\n"} {
				if err := os.WriteFile(filepath.Join(d.dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if c.answer == "" {
				d.env = append(d.env, "CLAUDECODE=1")
				d.must(c.code, "links", "README.md", "--fix")
			} else {
				d.agreeing(c.answer, c.code, "links", "README.md", "--fix")
			}
			d.sees(c.shown)
			if text, err := os.ReadFile(readme); err != nil || string(text) != c.want {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
