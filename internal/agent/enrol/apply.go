package enrol

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

// record holds the content of a host's files before it was enrolled.
type record struct {
	Host  string     `json:"host"`
	At    time.Time  `json:"at"`
	Files []keptFile `json:"files"`
	Dirs  []string   `json:"dirs"` // directories that were created, from the root, outer ones first
}

type keptFile struct {
	Path    string `json:"path"`
	Existed bool   `json:"existed"`
	Before  []byte `json:"before"`
	After   string `json:"after"` // SHA-256 of the content that we wrote
}

func (r *record) file(path string) *keptFile {
	if r == nil {
		return nil
	}
	i := slices.IndexFunc(r.Files, func(f keptFile) bool { return f.Path == path })
	if i < 0 {
		return nil
	}
	return &r.Files[i]
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (s Site) recordFile(h Host) string { return filepath.Join(s.Records, h.Name+".json") }

func (s Site) recordOf(h Host) (*record, error) {
	text, err := os.ReadFile(s.recordFile(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := &record{}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		return nil, &lockkeeper.StoreError{Store: s.recordFile(h), Reason: "the record of the original files cannot be read", Err: err, Next: "remove the record; --undo can then remove only the entries of Lockkeeper"}
	}
	return r, nil
}

// Apply carries out the whole plan, or changes nothing.
func (p *Enrolment) Apply(ctx context.Context) (err error) {
	for _, e := range p.Edits {
		now, err := p.site.read(e.Path)
		if err != nil {
			return err
		}
		if now.Exists != e.Exists || !bytes.Equal(now.Before, e.Before) {
			return &lockkeeper.RefusedError{Act: "init", Reason: e.Path + " was changed meanwhile, and init changed nothing", Next: "repeat the command"}
		}
	}
	if p.undo {
		return p.rollBack(ctx)
	}
	if len(p.Edits) == 0 {
		return nil
	}
	next, err := p.record()
	if err != nil {
		return err
	}
	if err := p.site.keep(ctx, p.Host, next); err != nil {
		return err
	}
	if err := p.write(ctx); err != nil {
		return errors.Join(err, p.site.keep(context.WithoutCancel(ctx), p.Host, p.kept))
	}
	return nil
}

// rollBack restores the files and removes the record.
func (p *Enrolment) rollBack(ctx context.Context) error {
	if err := p.write(ctx); err != nil {
		return err
	}
	if p.kept != nil {
		for _, dir := range slices.Backward(p.kept.Dirs) {
			os.Remove(filepath.Join(p.site.Root, dir)) // a directory that is not empty stays
		}
	}
	return p.site.keep(ctx, p.Host, nil)
}

// keep replaces the record of a host, or removes it if r is nil.
func (s Site) keep(ctx context.Context, h Host, r *record) error {
	if r == nil {
		if err := os.Remove(s.recordFile(h)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Records, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(ctx, s.recordFile(h), text, 0o600)
}

// record returns the record of a plan. For a file that an earlier enrolment changed, it keeps the
// content before that enrolment.
func (p *Enrolment) record() (*record, error) {
	next := &record{Host: p.Host.Name, At: time.Now().UTC()}
	if p.kept != nil {
		next.Files, next.Dirs = slices.Clone(p.kept.Files), p.kept.Dirs
	}
	for _, e := range p.Edits {
		if e.InHome() {
			continue // a file in the home serves other codebases too, so undoing never restores its earlier content
		}
		k := keptFile{Path: e.Path, Existed: e.Exists, Before: e.Before, After: sumOf(e.After)}
		if was := next.file(e.Path); was == nil {
			next.Files = append(next.Files, k)
		} else if err := p.follow(was, k, e); err != nil {
			return nil, err
		}
		for dir := filepath.Dir(filepath.FromSlash(e.Path)); dir != "."; dir = filepath.Dir(dir) {
			if _, err := os.Lstat(filepath.Join(p.site.Root, dir)); errors.Is(err, fs.ErrNotExist) && !slices.Contains(next.Dirs, dir) {
				next.Dirs = append(next.Dirs, dir)
			}
		}
	}
	slices.Sort(next.Dirs)
	return next, nil
}

// follow updates the recorded state of a file.
func (p *Enrolment) follow(was *keptFile, k keptFile, e Edit) error {
	if sumOf(e.Before) == was.After {
		was.After = k.After
		return nil
	}
	i := slices.IndexFunc(p.Host.files, func(f file) bool { return f.path == e.Path })
	bare, err := e.amended(p.Host.files[i], p.order, part.outOf)
	if err != nil {
		return err
	}
	k.Before = bare
	*was = k
	return nil
}

// write changes the files. If one fails, it restores the files before it.
func (p *Enrolment) write(ctx context.Context) error {
	for i, e := range p.Edits {
		if err := e.write(ctx); err != nil {
			for _, done := range slices.Backward(p.Edits[:i]) {
				back := Edit{File: done.File, Goes: !done.Exists, After: done.Before}
				err = errors.Join(err, back.write(context.WithoutCancel(ctx)))
			}
			return err
		}
	}
	return nil
}

func (e Edit) write(ctx context.Context) error {
	if e.Goes {
		return os.Remove(e.File)
	}
	if err := os.MkdirAll(filepath.Dir(e.File), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(ctx, e.File, e.After, 0o644)
}
