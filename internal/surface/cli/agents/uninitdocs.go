package agents

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/project"
)

// A presetDocument is a document, or a section of one, that init wrote for a preset.
type presetDocument struct {
	Path   string `json:"path"` // absolute
	Preset string `json:"preset"`
	Act    string `json:"act"` // remove, edit or keep

	was, rest string // its content, and the content without the section
}

// These are what uninit does with a document of a preset.
const (
	removeDocument = "remove" // the document has only the section
	editDocument   = "edit"   // it has other content, which stays
	keepDocument   = "keep"   // the section was changed
)

func (d presetDocument) facts() string {
	switch d.Act {
	case editDocument:
		return ": remove the section of init " + d.Preset
	case keepDocument:
		return ": its section differs from what init " + d.Preset + " writes"
	}
	return ""
}

// presetDocuments finds the documents of the presets that the configuration has.
func presetDocuments(a *project.Project) (found []presetDocument, err error) {
	seen := map[string]bool{}
	for _, name := range resource.PresetNames() {
		preset, err := resource.PresetOf(name)
		if err != nil {
			return nil, err
		}
		if !preset.In(a.Config) {
			continue
		}
		for _, d := range preset.Documents {
			at, err := a.Root.Resolve("", d.Path, lockkeeper.Read)
			if err != nil || seen[at.Path] { // a link to outside the root is not a document of this project
				continue
			}
			seen[at.Path] = true
			path := a.Below(at.Path)
			content, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			doc := presetDocument{Path: path, Preset: name, Act: keepDocument, was: string(content)}
			rest, unchanged := d.Without(doc.was)
			switch doc.rest = rest; {
			case unchanged && rest == "":
				doc.Act = removeDocument
			case unchanged:
				doc.Act = editDocument
			case d.Into(doc.was) != doc.was:
				continue // it has no section
			}
			found = append(found, doc)
		}
	}
	return found, nil
}

// carryOut removes the section, and a file and directories that are then empty. It keeps a
// document that was changed since it was shown.
func (d presetDocument) carryOut(ctx context.Context, root string) error {
	now, err := os.ReadFile(d.Path)
	switch {
	case d.Act == keepDocument, errors.Is(err, fs.ErrNotExist), err == nil && string(now) != d.was:
		return nil
	case err != nil:
		return err
	case d.Act == editDocument:
		return durable.WriteFile(ctx, d.Path, []byte(d.rest), 0o644)
	}
	if err := os.Remove(d.Path); err != nil {
		return err
	}
	for dir := filepath.Dir(d.Path); dir != root; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil { // it has other files
			break
		}
	}
	return nil
}
