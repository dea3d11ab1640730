package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The reference names every key, with what it may be and what it means.
//
// shows: PL-57 GP-10
func TestReferenceIsCurrent(t *testing.T) {
	published(t, filepath.Join("..", "..", "docs", "config.md"), []byte(reference()))
}

// reference draws docs/config.md from the struct.
func reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Drawn from internal/config by go generate ./internal/config. -->

` + "`lockkeeper.yaml`" + ` lies at the root of the codebase; lockkeeper init makes it. A dot in a key stands for a line below a heading
(` + "`run.land`" + ` is ` + "`land:`" + ` below ` + "`run:`" + `). Later sources win: default, file, environment variable, flag. What is wrong is refused, with
file and line. ` + "`lockkeeper config`" + ` shows every value in force and where it came from; [lockkeeper.schema.json](lockkeeper.schema.json)
is for editors. Durations are written as ` + "`30m`, `45s`, `1h30m`, `7d`" + `, or in whole seconds. Where a key has NAME, the name is yours.
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
		doc := f.doc
		if f.env != "" {
			doc += " Environment: `" + f.env + "`."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.key, cell(f.shown()), f.allowed(), strings.ReplaceAll(doc, "|", "\\|"))
	}
	return b.String()
}

// cell is a value in a table; nothing where there is none.
func cell(value string) string {
	if value == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(value, "|", "\\|") + "`"
}
