package workspace

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// A Packed is an archive of changes.
type Packed struct {
	*os.File     // a gzipped tar archive, positioned at its start; the caller closes it
	Files    int // the number of files in the archive
	Left     int // the number of omitted files: too large, too deep or unreadable
}

// deletedName is the file of an archive that lists the deleted paths.
const deletedName = ".lockkeeper-deleted"

// packedAt is the time of all files in an archive, so that equal files make equal archives.
var packedAt = time.Unix(0, 0)

// Pack makes an archive of the new state of changed files, links and whole directories. It
// takes at most limit bytes of content and omits the rest.
func (w *Workspace) Pack(ctx context.Context, changes []Change, limit int64) (_ *Packed, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, err
	}
	f, err := w.newTemp()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), w.dropTemp())
		}
	}()
	zip, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	p := &packing{Packed: Packed{File: f}, ctx: ctx, tar: tar.NewWriter(zip), room: limit}
	var deleted strings.Builder
	for _, c := range changes {
		if c.Now == nil {
			deleted.WriteString(c.Path + "\n")
			continue
		}
		err := w.at(c.Path, func(dir int, name string) error { return p.add(dir, name, c.Path, 0) })
		if err != nil {
			return nil, pathError("pack", c.Path, err)
		}
	}
	if deleted.Len() > 0 {
		if err := p.put(&tar.Header{Name: deletedName, Mode: 0o600, Size: int64(deleted.Len())}, strings.NewReader(deleted.String())); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(p.tar.Close(), zip.Close()); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return &p.Packed, err
}

// A packing is an archive in progress.
type packing struct {
	Packed
	ctx  context.Context
	tar  *tar.Writer
	room int64
}

// add adds a name with everything below it.
func (p *packing) add(dir int, name, path string, depth int) error {
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	seen, err := statAt(dir, name)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case len(path) > maxPath || depth > maxDepth:
		p.Left++
	case seen.mode.IsDir():
		return inside(dir, name, func(sub int) error {
			return eachName(sub, func(names []string) error {
				slices.Sort(names)
				for _, name := range names {
					if err := p.add(sub, name, path+"/"+name, depth+1); err != nil {
						return err
					}
				}
				return nil
			})
		})
	case seen.mode.Type() == fs.ModeSymlink:
		text, err := readLink(dir, name)
		if err != nil {
			return err
		}
		p.Files++
		return p.put(&tar.Header{Typeflag: tar.TypeSymlink, Name: path, Linkname: text}, nil)
	case !seen.mode.IsRegular() || seen.size > p.room:
		p.Left++
	default:
		return p.addFile(dir, name, path, seen)
	}
	return nil
}

func (p *packing) addFile(dir int, name, path string, seen fileStat) error {
	fd, err := openRegular(dir, name)
	if isClosed(err) {
		p.Left++
		return nil
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	p.room -= seen.size
	p.Files++
	return p.put(&tar.Header{Name: path, Mode: int64(seen.mode.Perm()), Size: seen.size}, io.LimitReader(f, seen.size))
}

func (p *packing) put(h *tar.Header, content io.Reader) error {
	h.ModTime, h.Format = packedAt, tar.FormatPAX
	err := p.tar.WriteHeader(h)
	if err == nil && content != nil {
		_, err = io.Copy(p.tar, &stoppable{p.ctx, content})
	}
	return err
}
