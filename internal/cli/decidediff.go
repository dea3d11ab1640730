package cli

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"lockkeeper"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
)

// diffOf is what a batch changes: what was there, against what it made of it, both as
// they were kept.
func (d *decider) diffOf(unit string, b *dossier.Batch) (string, error) {
	var text strings.Builder
	for _, f := range filesOf(b) {
		part, err := d.fileDiff(unit, b.ID, f)
		if err != nil {
			return "", err
		}
		text.WriteString(part)
	}
	return text.String(), nil
}

// filesOf are the files of a batch as its last phase left them.
func filesOf(b *dossier.Batch) []flow.File {
	switch {
	case b.Verification != nil:
		return b.Verification.Files
	case b.CI != nil:
		return b.CI.Files
	case b.Tested != nil:
		return b.Tested.Files
	case b.Applied != nil:
		return b.Applied.Files
	}
	return nil
}

func (d *decider) fileDiff(unit, batch string, f flow.File) (string, error) {
	const nothing = "/dev/null"
	content := func(v lockkeeper.Version, name string) ([]byte, string, error) {
		if !v.Exists() {
			return nil, nothing, nil
		}
		text, err := readSome(d.book.Kept(unit, batch, v.Sum))
		return text, name, err
	}
	was, from, err := content(f.Old, "a/"+f.Path)
	if err == nil {
		var is []byte
		var to string
		if is, to, err = content(f.New, "b/"+f.Path); err == nil {
			switch {
			case len(was) > diffLimit || len(is) > diffLimit:
				return f.Path + ": too large to be shown as a diff\n", nil
			case isBinary(was) || isBinary(is):
				return f.Path + ": binary content\n", nil
			}
			return string(diff.Diff(from, was, to, is)), nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return f.Path + ": its content is not kept any more\n", nil
	}
	return "", err
}
