package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"lockkeeper/internal/app"
	"lockkeeper/rescue"
)

// diffLimit is the size up to which contents are compared line by line.
const diffLimit = 8 << 20

func (p *program) rescueShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "What it would change, as a diff",
		Long: `Show all that is known of something that is kept, and what it would change where
it was to go, as a diff against what is there now. Of content that is no text,
of a directory that was moved aside, and of what is damaged or cannot land, it says
where it is.`,
		Example: `  lockkeeper rescue show 20260131T090000.123-1b4e28ba
  lockkeeper rescue show 20260131T090000.123-1b4e28ba --json | jq -r .diff`,
		Args: exactly(1, "the id of something that is kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd.Context(), func(a *app.App) error {
				e, err := a.Shelf().Get(args[0])
				if err != nil {
					return err
				}
				return p.showRescue(cmd.Context(), a, e)
			})
		},
	}
}

// shown is an entry with what it would change, as JSON.
type shown struct {
	entry
	Diff string `json:"diff"`
	Note string `json:"note,omitempty"` // instead of a diff
}

func (p *program) showRescue(ctx context.Context, a *app.App, e rescue.Entry) error {
	s := shown{entry: entryOf(e)}
	var err error
	if s.Diff, s.Note, err = difference(a, e); err != nil {
		return err
	}
	if p.json {
		return p.printJSON(s)
	}
	fmt.Fprintf(p.Out, "%s: %s of %s, %s\n", e.ID, wanted(e), clean(e.Path), size(e))
	fmt.Fprintf(p.Out, "  kept %s ago, at %s; wanted by %s", span(p.Now().Sub(e.At)), stamp(e.At), clean(e.Holder))
	if e.GrantID != "" {
		fmt.Fprintf(p.Out, ", grant %s", clean(e.GrantID))
	}
	fmt.Fprintf(p.Out, "\n  why: %s\n  there then: %s\n", clean(e.Reason), clean(e.Base.String()))
	if s.Note != "" {
		fmt.Fprintln(p.Out, "  "+clean(s.Note))
	}
	fmt.Fprint(p.Out, p.legible(s.Diff))
	first, err := wayOut(ctx, a, e)
	p.advise(first + ", or lockkeeper rescue drop " + e.ID)
	return err
}

// wayOut is what can be done with an entry, besides dropping it.
func wayOut(ctx context.Context, a *app.App, e rescue.Entry) (string, error) {
	land, where := "lockkeeper rescue land "+e.ID, a.Shelf().ContentPath(e.ID)
	switch {
	case e.Kind == rescue.Whole:
		return "move it back by hand, under a lock on " + e.Path, nil
	case e.Kind == rescue.Damaged:
		return "copy what you need from " + where, nil
	case !strings.HasPrefix(e.Reason, "allowlist: "):
		return land, nil
	}
	barred, err := a.Barred(ctx, e.Path)
	switch {
	case err != nil || barred == nil:
		return land, err
	case strings.Contains(barred.Next, "gate.allowed_write_paths"):
		return barred.Next + ", then " + land + "; or copy what you need from " + where, nil
	}
	return barred.Next + ": the content is in " + where, nil
}

// legible is text from a file: as it is for a program, fit for the terminal for a
// person.
func (p *program) legible(text string) string {
	if !isTerminal(p.Out) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for i, part := range strings.Split(strings.TrimSuffix(line, "\n"), "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(clean(part))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// difference is what an entry would change, or a note where that is no text.
func difference(a *app.App, e rescue.Entry) (text, note string, err error) {
	const nothing = "/dev/null"
	shelf := a.Shelf()
	content := shelf.ContentPath(e.ID)
	switch e.Kind {
	case rescue.Whole:
		where, err := readSome(shelf.Content(e.ID))
		return "", strings.TrimSpace(string(where)), err
	case rescue.Damaged:
		return "", "what is left of the content is in " + content, nil
	}
	now, name := e.Path, e.Path
	there, err := readSome(os.OpenFile(filepath.Join(a.Root.Dir(), filepath.FromSlash(e.Path)), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now = nothing
	case err != nil:
		return "", "what is at " + e.Path + " now cannot be read: " + err.Error(), nil
	}
	var kept []byte
	switch {
	case e.Sum == "" && !e.Delete:
		return "", fmt.Sprintf("no content is kept; the permissions wanted are %04o", e.Mode.Perm()), nil
	case e.Delete:
		name = nothing
	default:
		if kept, err = readSome(shelf.Content(e.ID)); err != nil {
			return "", "", err
		}
	}
	switch {
	case len(kept) > diffLimit || len(there) > diffLimit:
		return "", "too large to be shown as a diff; the content is in " + content, nil
	case isBinary(kept) || isBinary(there):
		return "", "binary content, SHA-256 " + e.Sum + "; it is in " + content, nil
	case bytes.Equal(kept, there):
		return "", "the same content is there already", nil
	}
	return string(diff.Diff(now, there, name, kept)), "", nil
}

// readSome reads an opened file, and of one beyond the limit just enough to tell.
func readSome(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, diffLimit+1))
	return text, errors.Join(err, f.Close())
}

// isBinary reports whether content is no text that could be shown.
func isBinary(content []byte) bool { return bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) }
