package rescue

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"lockkeeper"
)

// Bases opens the content that a path had in a version. The reader is nil if the content is not
// available any more.
type Bases func(ctx context.Context, path string, version lockkeeper.Version) (io.ReadCloser, error)

// BaseLimit is the largest size of a base that a shelf keeps with an entry.
const BaseLimit = 8 << 20

// WithBases returns a shelf that keeps the base of each new entry beside its content, so that
// the change can be compared with its base and merged after the file has moved on.
func (s *Shelf) WithBases(find Bases) *Shelf {
	with := *s
	with.bases = find
	return &with
}

// HasBase reports whether Base is the version that the content was based on. A zero Base means
// then that the file did not exist. Other entries have the version that replaced the content, or
// none.
func (e Entry) HasBase() bool {
	switch e.Kind {
	case Gap, Unlanded:
		return e.Base.Exists() || !strings.HasPrefix(e.Reason, "base: ") // the gate omits a base that it does not know
	}
	return false
}

// Base returns the content of the version that an entry is based on; known is false if the entry
// does not have it. A base that was changed on disk is not returned.
func (s *Shelf) Base(id string) (content []byte, known bool, err error) {
	err = s.entry(id, func(shelf *os.File) error {
		e, err := s.read(shelf, id)
		if err != nil || e.Kind == Damaged || !e.HasBase() {
			return err
		}
		f, err := s.openRegular(shelf, id, baseName)
		if err != nil {
			return nil // none was kept
		}
		content, err = io.ReadAll(io.LimitReader(f, BaseLimit+1))
		known = sha256.Sum256(content) == e.Base.Sum
		return errors.Join(err, s.disk.Close(f))
	})
	if err != nil || !known {
		return nil, false, err
	}
	return content, true, nil
}

// keepBase writes the base of an entry into its directory. It keeps none if the base is not
// available, or its content is not the expected one.
func (s *Shelf) keepBase(ctx context.Context, dir *os.File, e *Entry) error {
	if s.bases == nil || e.Base.Kind != lockkeeper.File || !e.HasBase() || e.Sum == fmt.Sprintf("%x", e.Base.Sum) {
		return nil
	}
	from, err := s.bases(ctx, e.Path, e.Base)
	if err != nil || from == nil {
		return nil // the content matters more than its base
	}
	base, err := io.ReadAll(io.LimitReader(from, BaseLimit+1))
	if err := errors.Join(err, from.Close()); err != nil || len(base) > BaseLimit || sha256.Sum256(base) != e.Base.Sum {
		return nil
	}
	return s.write(dir, baseName, func(f *os.File) error { return s.disk.Write(f, base) })
}
