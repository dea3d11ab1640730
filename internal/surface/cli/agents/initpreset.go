package agents

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/gate"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/command"
)

var presetWords = map[string]struct{ short, long, next string }{
	"book": {"Set up a book project, whose chapters and registries are locked by name", `Make this directory the root of a book project, as lockkeeper init does. In addition,
lockkeeper.yaml gets the resources of a book (Chapter_01, StyleSystem, …), the prompts
that work on them, and a file that shows claims to other tools. The project gets
documents that explain the locks to its authors and their agents.

An existing document keeps its content and gets a section at its end. All documents are
one landing, which lockkeeper undo can undo. Running it again is harmless.`, "lockkeeper claim Chapter_01, before you change that chapter; lockkeeper op lists the prompts"},
	"fole": {"Set up projects, maps and sketches, with the locks each operation needs", `Make this directory the root of a space for projects, maps and sketches, as lockkeeper
init does. In addition, lockkeeper.yaml gets the table of operations and the locks they
need, which lockkeeper op reads, and jobs get the policy dal. CLAUDE.md and AGENTS.md get
a section with the concurrency rules, which agents load when they start.

An existing document keeps its content and gets a section at its end. The documents are
one landing, which lockkeeper undo can undo. Running it again is harmless.`, "lockkeeper op, which lists the operations"},
}

func (p *program) presetCommand(name string) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:     name,
		Short:   presetWords[name].short,
		Long:    presetWords[name].long,
		Example: "  lockkeeper init " + name,
		RunE: func(cmd *cobra.Command, _ []string) error {
			preset, err := resource.PresetOf(name)
			if err != nil {
				return err
			}
			if _, _, err := withTables(filepath.Join(p.Base(), config.FileName), preset); err != nil {
				return err // init checks the tables before it creates anything
			}
			done, err := p.initialize(cmd.Context(), o)
			if err != nil {
				return err
			}
			landing, err := p.layPreset(cmd, done, preset)
			if err != nil {
				return err
			}
			if err := p.showInit(done, nil, presetWords[name].next); err != nil || landing == nil || p.JSON {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "the documents are landing %d; %s\n", landing.Seq, command.UndoStep(landing.Seq, ""))
			return err
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

// layPreset adds the tables and documents of a preset to a new root. It returns the landing of
// the documents, or nil if all of them exist.
func (p *program) layPreset(cmd *cobra.Command, done *project.InitResult, preset *resource.Preset) (landing *lockkeeper.Landing, err error) {
	path := filepath.Join(done.Root, config.FileName)
	text, changed, err := withTables(path, preset)
	if err != nil {
		return nil, err
	}
	if changed {
		if err := durable.WriteFile(cmd.Context(), path, []byte(text), 0o644); err != nil {
			return nil, err
		}
		if !slices.Contains(done.Made, config.FileName) {
			done.Made = append(done.Made, config.FileName)
		}
	}
	done.Allowed = nil // the preset allows paths that do not exist yet
	err = p.With(cmd.Context(), func(a *project.Project) error {
		if _, err := resource.Of(a.Config); err != nil { // checks the tables together with the rest of the configuration
			return err
		}
		landing, err = p.layDocuments(cmd, a, preset)
		return err
	})
	if landing != nil {
		for _, c := range landing.Changes {
			done.Made = append(done.Made, c.Path)
		}
	}
	return landing, err
}

// withTables adds the tables of a preset to the text of a configuration file. It does not
// change a file that has all their rows, even edited, and refuses one with other tables.
func withTables(path string, preset *resource.Preset) (text string, changed bool, err error) {
	have, err := config.LoadFile(path)
	if err != nil {
		return "", false, err
	}
	read, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		read, err = []byte(config.Sample()), nil
	}
	if err != nil {
		return "", false, err
	}
	text = string(read)
	missing := slices.DeleteFunc(preset.Rows(), func(name string) bool {
		return have.Resources.Row(name) != nil || have.Operations.Row(name) != nil
	})
	if len(missing) == 0 {
		return text, false, nil
	}
	// The keys replace the commented lines of the sample.
	text = regexp.MustCompile(`(?m)^# .*\n(?:# One of: .*\n)?#(locks_file|job_policy|resources|operations):.*\n\n?`).ReplaceAllString(text, "")
	if found := regexp.MustCompile(`(?m)^(locks_file|job_policy|resources|operations):`).FindString(text); found != "" {
		key := strings.TrimSuffix(found, ":")
		return "", false, &lockkeeper.InputError{Field: "preset", Value: preset.Name, Reason: config.FileName + " has " + key + " of its own, without " + strings.Join(missing[:min(3, len(missing))], ", ") + " of the preset",
			Next: "add by hand what you need; lockkeeper init " + preset.Name + " in an empty directory shows the whole table"}
	}
	text, err = withWrites(text, have, preset)
	return strings.TrimRight(text, "\n") + "\n" + preset.Tables, err == nil, err
}

// withWrites lets the gate write where the preset needs it. It refuses a file with other paths.
func withWrites(text string, have *config.Config, preset *resource.Preset) (string, error) {
	const key = "gate.allowed_write_paths"
	own := have.Source(key) != config.FromDefault
	missing := slices.DeleteFunc(slices.Clone(preset.Writes), func(path string) bool {
		return slices.ContainsFunc(have.Gate.AllowedWritePaths, func(dir string) bool { return dir == path || lockkeeper.IsAncestor(dir, path) })
	})
	if own && len(missing) > 0 {
		return "", &lockkeeper.InputError{Field: "preset", Value: preset.Name, Reason: config.FileName + " has " + key + " of its own, without " + strings.Join(missing, ", "), Next: "add them there"}
	}
	paths := "allowed_write_paths: [" + strings.Join(preset.Writes, ", ") + "]"
	line := regexp.MustCompile(`(?m)^  #allowed_write_paths:.*$`)
	group := regexp.MustCompile(`(?m)^gate:$`)
	switch {
	case own:
		return text, nil
	case line.MatchString(text):
		return line.ReplaceAllLiteralString(text, "  "+paths), nil
	case group.MatchString(text):
		return group.ReplaceAllLiteralString(text, "gate:\n  "+paths), nil
	}
	return strings.TrimRight(text, "\n") + "\n\ngate:\n  " + paths + "\n", nil
}

// layDocuments lands the missing documents of a preset, as one landing.
func (p *program) layDocuments(cmd *cobra.Command, a *project.Project, preset *resource.Preset) (landing *lockkeeper.Landing, err error) {
	var changes []gate.Change
	var paths []string
	for _, d := range preset.Documents {
		at, err := a.Root.Resolve("", d.Path, lockkeeper.Write)
		if err != nil {
			return nil, err
		}
		change, err := withSection(a.Root.Dir(), at.Path, d)
		if err != nil {
			return nil, err
		}
		if change != nil {
			changes, paths = append(changes, *change), append(paths, at.Path)
		}
	}
	if len(changes) == 0 {
		return nil, nil
	}
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	err = p.Under(cmd, a, "write the documents of a "+preset.Name, command.OwnLock{}, paths, func(ctx context.Context, grant *lockkeeper.Grant) (err error) {
		landing, err = g.Commit(ctx, grant, changes)
		return err
	})
	return landing, err
}

// withSection returns the change that adds a section to a file, or nil if the file has it.
func withSection(root, path string, d resource.Document) (*gate.Change, error) {
	file := filepath.Join(root, filepath.FromSlash(path))
	var base lockkeeper.Version
	content, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		base = lockkeeper.Version{Kind: lockkeeper.File, Mode: info.Mode().Perm(), Sum: sha256.Sum256(content)}
	}
	wanted := d.Into(string(content))
	if wanted == string(content) {
		return nil, nil
	}
	change := gate.Put(path, []byte(wanted))
	change.Base = &base
	return &change, nil
}
