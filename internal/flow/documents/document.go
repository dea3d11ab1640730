package documents

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"
	"unicode/utf8"

	"lockkeeper/internal/encoding/jsonplace"

	"lockkeeper"
)

const (
	member = "lockkeeper" // the member with hash and author of a document
	format = 1
)

// About records who wrote a document, when, and after which calls. The hash does not cover it.
type About struct {
	WrittenAt time.Time         `json:"written_at"` // zero: the time of writing
	By        string            `json:"by"`
	Calls     []json.RawMessage `json:"calls,omitempty"` // agent calls
}

// A Doc is a document as stored on disk.
type Doc struct {
	Path  string          // relative to the directory of documents
	Body  json.RawMessage // compact, without the member "lockkeeper"
	Sum   string          // SHA-256 of Body, in hex
	About About           // zero if a person or another tool wrote the document
}

// A note is the value of the member "lockkeeper" of a document.
type note struct {
	Format int    `json:"format"`
	SHA256 string `json:"sha256"`
	About
}

// Read reads a document. It returns nil if the document is missing. It returns *MalformedError if
// the document is not JSON, its hash does not match, or check refuses it. The function check may
// be nil.
func (f *Folder) Read(ctx context.Context, name string, check func(body []byte) error) (doc *Doc, err error) {
	r := f.Open(ctx)
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.Read(ctx, name, check)
}

// A Reading is a folder that is open for reading. Opening a folder checks every name on the way to it,
// which takes longer than reading a document.
type Reading struct {
	at  *location
	err error // why the folder is not open
}

// Open opens the folder, to read several documents. Each Read returns the error if that fails. A
// missing folder is empty. The caller must close the Reading.
func (f *Folder) Open(ctx context.Context) *Reading {
	p, err := f.open(ctx)
	return &Reading{p, err}
}

// Read reads a document like Folder.Read.
func (r *Reading) Read(ctx context.Context, name string, check func(body []byte) error) (*Doc, error) {
	if err := documentName(name); err != nil {
		return nil, err
	}
	if errors.Is(r.err, fs.ErrNotExist) {
		return nil, nil
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.at.document(ctx, name, check)
}

func (r *Reading) Close() error {
	if r.err != nil {
		return nil
	}
	return r.at.close()
}

// document does the same as Read in an open folder.
func (p *location) document(ctx context.Context, name string, check func(body []byte) error) (*Doc, error) {
	data, _, err := p.read(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	doc, bad := parse(data)
	if bad == nil && check != nil {
		if err := check(doc.Body); err != nil {
			bad = &MalformedError{Reason: err.Error()}
		}
	}
	if bad != nil {
		bad.Path, bad.Next = p.folder.rel(name), "repair it, or run its phase again"
		return nil, bad
	}
	doc.Path = p.folder.rel(name)
	return doc, nil
}

// parse parses a document. It rejects trailing data and duplicate members, so that no part is
// silently dropped.
func parse(data []byte) (*Doc, *MalformedError) {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		bad := &MalformedError{Reason: err.Error()}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			bad.Line = lineAt(data, syntax.Offset)
		}
		return nil, bad
	}
	if !utf8.Valid(data) {
		return nil, &MalformedError{Reason: "not UTF-8"}
	}
	if whole[0] != '{' {
		return nil, &MalformedError{Line: 1, Reason: "not a JSON object"}
	}
	var body bytes.Buffer
	body.WriteByte('{')
	seen := map[string]json.RawMessage{}
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil { // reads the opening brace
		return nil, &MalformedError{Line: 1, Reason: err.Error()}
	}
	for dec.More() {
		before := dec.InputOffset()
		token, err := dec.Token()
		at := dec.InputOffset()
		text := bytes.TrimLeft(data[before:at], " \t\r\n,")
		name, _ := token.(string)
		if _, twice := seen[name]; twice {
			err = fmt.Errorf("duplicate member %q", name)
		}
		var raw json.RawMessage
		err = errors.Join(err, dec.Decode(&raw))
		var value bytes.Buffer
		if err = errors.Join(err, json.Compact(&value, raw)); err != nil {
			return nil, &MalformedError{Line: lineAt(data, at), Reason: err.Error()}
		}
		seen[name] = value.Bytes()
		if name == member {
			continue
		}
		if body.Len() > 1 {
			body.WriteByte(',')
		}
		body.Write(slices.Concat(text, []byte(":"), value.Bytes()))
	}
	body.WriteByte('}')
	sum := sha256.Sum256(body.Bytes())
	doc := &Doc{Body: body.Bytes(), Sum: hex.EncodeToString(sum[:])}
	own, ours := seen[member]
	if !ours {
		return doc, nil
	}
	var n note
	if err := json.Unmarshal(own, &n); err != nil {
		return nil, &MalformedError{Reason: fmt.Sprintf("the member %q: %v", member, err)}
	}
	if n.Format != format {
		return nil, &MalformedError{Reason: fmt.Sprintf("its format is %d, but this program supports %d", n.Format, format)}
	}
	if n.SHA256 != doc.Sum {
		return nil, &MalformedError{Reason: fmt.Sprintf("its content has the hash %.12s, but the stored hash is %.12s: it was damaged, or edited by hand (then remove the member %q)",
			doc.Sum, n.SHA256, member)}
	}
	doc.About = n.About
	return doc, nil
}

func lineAt(data []byte, offset int64) int {
	line, _ := jsonplace.Position(data, offset)
	return line
}

// compose returns the text of a document. parse is its inverse.
func compose(body any, about About) ([]byte, *Doc, error) {
	invalid := func(reason string) error {
		return &lockkeeper.InputError{Field: "document", Value: fmt.Sprintf("%T", body), Reason: reason}
	}
	plain, err := encode(body)
	if err != nil {
		return nil, nil, invalid(err.Error())
	}
	doc, bad := parse(plain)
	if bad != nil {
		return nil, nil, invalid(bad.Reason)
	}
	if !bytes.Equal(doc.Body, plain) {
		return nil, nil, invalid(fmt.Sprintf("the member %q is reserved", member))
	}
	if about.WrittenAt.IsZero() {
		about.WrittenAt = time.Now()
	}
	about.WrittenAt = about.WrittenAt.Round(0).UTC()
	own, err := encode(note{Format: format, SHA256: doc.Sum, About: about})
	if err != nil {
		return nil, nil, invalid(err.Error())
	}
	joined := bytes.TrimSuffix(plain, []byte("}"))
	if len(joined) > 1 {
		joined = append(joined, ',')
	}
	joined = fmt.Appendf(joined, "%q:%s}", member, own)
	var text bytes.Buffer
	if err := json.Indent(&text, joined, "", "  "); err != nil {
		return nil, nil, invalid(err.Error())
	}
	text.WriteByte('\n')
	doc.About = about
	return text.Bytes(), doc, nil
}

// encode returns compact JSON without escaping <, > and &.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Write creates or replaces a document. Body is encoded as a JSON object.
func (f *Folder) Write(ctx context.Context, name string, body any, about About) (*Doc, error) {
	return f.put(ctx, name, body, about, func(*location) error { return nil })
}

// Replace does the same as Write if the content is still that of the version was; nil means a
// missing document. Otherwise it changes nothing and returns a *ChangedError. Documents with equal
// bodies are equal.
func (f *Folder) Replace(ctx context.Context, was *Doc, name string, body any, about About) (*Doc, error) {
	return f.put(ctx, name, body, about, func(p *location) error { return p.expect(ctx, was, name) })
}

func (f *Folder) put(ctx context.Context, name string, body any, about About, may func(*location) error) (*Doc, error) {
	if err := documentName(name); err != nil {
		return nil, err
	}
	text, doc, err := compose(body, about)
	if err != nil {
		return nil, err
	}
	err = f.change(ctx, true, func(p *location) error {
		if err := may(p); err != nil {
			return err
		}
		return p.write(ctx, name, text)
	})
	if err != nil {
		return nil, err
	}
	doc.Path = f.place().rel(name)
	return doc, nil
}

// Remove removes a document if its content is still that of the version was. Otherwise it changes
// nothing and returns a *ChangedError.
func (f *Folder) Remove(ctx context.Context, was *Doc, name string) error {
	if err := documentName(name); err != nil {
		return err
	}
	err := f.change(ctx, false, func(p *location) error {
		if err := p.expect(ctx, was, name); err != nil || was == nil {
			return err
		}
		return p.remove(name)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return f.place().differs(was, nil, name)
	}
	return err
}

// expect returns a *ChangedError unless the content of the document is still that of the version
// was.
func (p *location) expect(ctx context.Context, was *Doc, name string) error {
	is, err := p.document(ctx, name, nil)
	if bad, ok := errors.AsType[*MalformedError](err); ok {
		changed := &ChangedError{Path: p.folder.rel(name), Malformed: bad}
		if was != nil {
			changed.Was = was.Sum
		}
		return changed
	}
	if err != nil {
		return err
	}
	return p.folder.differs(was, is, name)
}

// differs returns a *ChangedError unless both are the same document or both are missing.
func (p place) differs(was, is *Doc, name string) error {
	changed := &ChangedError{Path: p.rel(name)}
	if was != nil {
		changed.Was = was.Sum
	}
	if is != nil {
		changed.Is, changed.By, changed.At = is.Sum, is.About.By, is.About.WrittenAt
	}
	if (was == nil) == (is == nil) && changed.Was == changed.Is {
		return nil
	}
	return changed
}

// SetAside renames a malformed document, so that it is neither read nor overwritten. It returns
// the new path relative to the directory of documents, or "" if there is no document.
func (f *Folder) SetAside(ctx context.Context, name string) (kept string, err error) {
	if err := documentName(name); err != nil {
		return "", err
	}
	err = f.change(ctx, false, func(p *location) error {
		kept, err = p.setAside(name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return kept, err
}
