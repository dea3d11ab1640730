package sidecar

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// filesDir holds whole files, each under the hash of its content.
const filesDir = "files"

// blobPerm lets only the owner read a kept file, because the original may not be readable by
// others.
const blobPerm fs.FileMode = 0o600

func (f *Folder) files() *Folder { return f.Sub(filesDir) }

// Keep stores a content under its hash. Storing it again changes nothing.
func (f *Folder) Keep(ctx context.Context, r io.Reader) (sum [32]byte, err error) {
	data, err := io.ReadAll(r) // before the lock, because it may take long
	if err != nil {
		return sum, err
	}
	sum = sha256.Sum256(data)
	return sum, f.files().change(ctx, true, func(p *location) error {
		there, err := p.proven(ctx, sum)
		var bad *MalformedError
		switch {
		case err == nil:
			return errors.Join(there.Close(), p.ops.SyncDir(p.folder.Dir())) // its writer may have died before it synced
		case !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &bad):
			return err
		}
		return p.writer().WriteFile(ctx, p.path(hex.EncodeToString(sum[:])), data, blobPerm)
	})
}

// Kept opens a stored content and verifies its hash. It returns *MalformedError if the content is
// damaged, and fs.ErrNotExist if it is not stored here.
func (f *Folder) Kept(sum [32]byte) (file *os.File, err error) {
	ctx := context.Background() // nothing here waits
	p, err := f.files().open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return p.proven(ctx, sum)
}

// proven opens a stored file if its content has the hash of its name.
func (p *location) proven(ctx context.Context, sum [32]byte) (*os.File, error) {
	name := hex.EncodeToString(sum[:])
	file, err := p.openFile(ctx, name)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	if got := hash.Sum(nil); err == nil && !bytes.Equal(got, sum[:]) {
		err = &MalformedError{Path: p.folder.rel(name), Reason: fmt.Sprintf("its content has the hash %x: it is damaged", got[:6]),
			Next: "restore the content from a backup or from git"}
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
