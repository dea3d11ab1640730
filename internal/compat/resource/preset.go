package resource

import (
	"cmp"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project/config"
)

//go:embed preset
var presets embed.FS

// A Preset is what lockkeeper init writes for one kind of project.
type Preset struct {
	Name      string
	Tables    string     // resource tables for lockkeeper.yaml
	Writes    []string   // paths the gate must allow; empty for the default
	Documents []Document // instructions about the locks for people and agents
}

// A Document is a text for a file of a project: a new file, or a section appended to an
// existing one.
type Document struct {
	Path string // path from the root
	Text string
	Mark string // a line by which a document with the section is recognized
}

func PresetNames() []string { return []string{"book", "fole"} }

func PresetOf(name string) (*Preset, error) {
	if !slices.Contains(PresetNames(), name) {
		return nil, &lockkeeper.InputError{Field: "preset", Value: name, Reason: "unknown preset", Next: "use " + strings.Join(PresetNames(), " or ")}
	}
	p := &Preset{Name: name}
	var err error
	if p.Tables, err = embedded(name + ".yaml"); err != nil {
		return p, err
	}
	type document struct{ path, from, mark string }
	documents := []document{{"CLAUDE.md", "rules.md", ""}, {"AGENTS.md", "rules.md", ""}} // agents load these two files when they start
	p.Writes = []string{"data", "CLAUDE.md", "AGENTS.md"}
	if name == "book" {
		p.Writes = []string{"Manuscript", ".config", "Drafts", "Exports", "Process", "Proposal", "CLAUDE.md", ".gitignore"}
		documents = []document{
			{".gitignore", "gitignore", ".locks/"},
			{"CLAUDE.md", "claude.md", ""},
			{"Process/18_Lock_Management_Module.md", "module.md", ""},
			{"Process/AI-Assisted_Nonfiction_Authoring_Process.md", "process.md", ""},
			{"Process/Prompts/QUICK_REFERENCE.md", "quick_reference.md", ""},
			{"Proposal/CONCURRENCY.md", "concurrency.md", ""},
		}
	}
	for _, d := range documents {
		text, err := embedded(name + "/" + d.from)
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(text, "\n")
		p.Documents = append(p.Documents, Document{Path: d.path, Text: text, Mark: cmp.Or(d.mark, first)})
	}
	return p, nil
}

func embedded(name string) (string, error) {
	text, err := presets.ReadFile("preset/" + name)
	if err != nil {
		return "", fmt.Errorf("preset: %w", err)
	}
	return string(text), nil
}

func (p *Preset) Rows() []string {
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^  ([A-Za-z][^ :]*):`).FindAllStringSubmatch(p.Tables, -1) {
		names = append(names, found[1])
	}
	return names
}

// In reports whether a configuration has rows of the preset.
func (p *Preset) In(c *config.Config) bool {
	return slices.ContainsFunc(p.Rows(), func(name string) bool { return c.Resources.Row(name) != nil || c.Operations.Row(name) != nil })
}

// Into returns content with the section added, unless it already has it.
func (d Document) Into(content string) string {
	switch {
	case content == "":
		return d.Text
	case slices.Contains(strings.Split(content, "\n"), d.Mark):
		return content
	case !strings.HasSuffix(content, "\n"):
		content += "\n"
	}
	return content + "\n" + d.Text
}

// Without returns content without the section, and whether content has the section unchanged.
func (d Document) Without(content string) (rest string, unchanged bool) {
	if rest, ok := strings.CutPrefix(content, d.Text); ok {
		return strings.TrimPrefix(rest, "\n"), true
	}
	before, after, ok := strings.Cut(content, "\n\n"+d.Text)
	if !ok {
		return content, false
	}
	return before + "\n" + after, true
}
