package landings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
)

type writeOptions struct {
	grant      command.GrantID
	mode, base string

	ontoCurrent bool
}

func (p *program) writeCommand() *cobra.Command {
	var o writeOptions
	cmd := &cobra.Command{
		Use:   "write --grant GRANT PATH <CONTENT",
		Short: "Write one file",
		Long: `Write standard input to one file, which the grant must hold for writing. At every moment
the file is the old or the new one. It keeps its permissions; a new file gets 0644, and
missing directories are created. In a pipe it prints only the number of the landing, or
nothing if the file was the same already; the rest goes to standard error.

It is refused with exit code 5 if the grant is gone or does not hold the path, or if the
path is not allowed. It is also refused if the file was changed since the last write
under this grant, or since --base: "nothing", the SHA-256 of the content, or a version
as --json prints it.`,
		Example: `  lockkeeper gate write --grant "$grant" app/models/user.rb <user.rb
  lockkeeper gate write --grant "$grant" --mode 0755 app/services/run.sh <run.sh
  base=$(sha256sum <app/models/user.rb | cut -d' ' -f1)
  edit <app/models/user.rb | lockkeeper gate write --grant "$grant" --base "$base" app/models/user.rb`,
		Args: command.Exactly(1, "one path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			mode, err := parseMode(o.mode)
			if err != nil {
				return err
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.write(cmd, a, o, args[0], mode) })
		},
	}
	f := cmd.Flags()
	f.Var(&o.grant, "grant", "the `id` of the grant that covers the path")
	f.StringVar(&o.mode, "mode", "", "the file's permissions, such as 0755 (default: unchanged; 0644 for a new file)")
	f.StringVar(&o.base, "base", "", "what the file must hold now: nothing, a SHA-256, or a `version`")
	f.BoolVar(&o.ontoCurrent, "onto-current", false, "replace the file as it is now, also if another writer changed it")
	cmd.MarkFlagsMutuallyExclusive("base", "onto-current")
	return cmd
}

// write reads standard input only after it has checked the arguments and opened the
// gate. So it consumes nothing that could be neither written nor kept.
func (p *program) write(cmd *cobra.Command, a *project.Project, o writeOptions, path string, mode *fs.FileMode) error {
	target, err := a.File(path)
	if err != nil {
		return err
	}
	change := gate.Change{Path: target, Mode: mode}
	if o.ontoCurrent {
		set := []gate.Change{change}
		if err = landing.OntoCurrent(a, set); err != nil {
			return err
		}
		change = set[0]
	}
	if o.base != "" {
		if change.Base, err = landing.ParseBase(a, target, o.base); err != nil {
			return err
		}
	}
	if _, err := a.Gate(); err != nil {
		return err
	}
	content, err := p.spool()
	if err != nil {
		return err
	}
	defer content.Close()
	change.Body = content.body
	done, err := p.apply(cmd, a, o.grant, []gate.Change{change}, true)
	if err != nil {
		return content.orSaved(err)
	}
	return p.showWritten(done, o.grant)
}

// parseMode parses permissions; nil without any.
func parseMode(text string) (*fs.FileMode, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > uint64(fs.ModePerm) {
		return nil, &lockkeeper.InputError{Field: "mode", Value: text, Reason: "not the permissions of a file", Next: "write them in octal, such as 0644 or 0755"}
	}
	mode := fs.FileMode(n)
	return &mode, nil
}

// spooled is the content of standard input in an unlinked file, so that it can be read again
// and vanishes with this process.
type spooled struct {
	*os.File
	size int64
}

func (p *program) spool() (*spooled, error) {
	if p.Attended() {
		fmt.Fprintln(p.Err, "note: reading the content from the terminal; end it with Ctrl-D")
	}
	f, err := os.CreateTemp("", "lockkeeper-")
	if err != nil {
		return nil, lockkeeper.WithNext(fmt.Errorf("cannot create a temporary file for standard input: %w; nothing was read or kept", err), "check TMPDIR")
	}
	s := &spooled{File: f}
	err = os.Remove(f.Name())
	if err == nil {
		s.size, err = io.Copy(f, p.In)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the content from standard input: %w; nothing was kept", err), f.Close())
	}
	return s, nil
}

func (s *spooled) body() (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(s.File, 0, s.size)), nil
}

// orSaved saves the content in a temporary file if the gate could not keep it, and adds the name of
// that file to the error.
func (s *spooled) orSaved(err error) error {
	var lost *gate.NotKeptError
	if !errors.As(err, &lost) {
		return err
	}
	f, failed := os.CreateTemp("", "lockkeeper-")
	if failed != nil {
		return errors.Join(err, failed)
	}
	_, failed = io.Copy(f, io.NewSectionReader(s.File, 0, s.size))
	if failed = errors.Join(failed, f.Close()); failed != nil {
		return errors.Join(err, failed, os.Remove(f.Name()))
	}
	return errors.Join(err, lockkeeper.WithNext(fmt.Errorf("the content of standard input is saved in %s", f.Name()), "write it again from there, then remove the file"))
}
