package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The reference names every key, with its allowed values and its meaning.
//
// shows: PL-57 GP-10
func TestReferenceIsCurrent(t *testing.T) {
	published(t, filepath.Join("..", "..", "..", "docs", "config.md"), []byte(reference()))
}

// reference generates docs/config.md from the struct.
func reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Generated from internal/project/config by go generate ./internal/project/config. -->

After reading this page you can change any setting of Lockkeeper. Settings are in ` + "`lockkeeper.yaml`" + ` at the root of the codebase, which
` + "`lockkeeper init`" + ` creates.

` + "```" + `
$ lockkeeper config
  KEY               VALUE   FROM      MAY BE
  agent.attempts    4       default   1 to 20
…
` + "```" + `

| | |
|---|---|
| precedence, lowest first | default, file, environment variable, flag |
| ` + "`run.land`" + ` | means ` + "`land:`" + ` below ` + "`run:`" + ` |
| NAME in a key | a name of your choice |
| duration | ` + "`30m`, `45s`, `1h30m`, `7d`" + `, or whole seconds |
| invalid value | refused, with file and line |
| editors | [lockkeeper.schema.json](lockkeeper.schema.json) |
`)
	group, head := "", "| key | default | may be | meaning |\n|---|---|---|---|\n"
	for i, f := range fieldsOf(withRows()) {
		name, _, isGroup := strings.Cut(f.key, ".")
		if !isGroup {
			name = ""
		}
		switch {
		case i == 0:
			b.WriteString("\n" + head)
		case name != group:
			fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", name, groupDoc(name), head)
		}
		group = name
		doc := f.doc()
		if f.also != "" {
			doc += " Also: `" + f.also + "`."
		}
		if f.rails != "" {
			doc += " In the layout rails the default is `" + strings.ReplaceAll(f.rails, ",", ", ") + "`."
		}
		if f.env != "" {
			doc += " Environment: `" + f.env + "`."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.key, cell(f.shown()), f.allowed(), strings.ReplaceAll(doc, "|", "\\|"))
	}
	return b.String()
}

// cell formats a value for a table. An empty value gives an empty cell.
func cell(value string) string {
	if value == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(value, "|", "\\|") + "`"
}
