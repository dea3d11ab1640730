package documents

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"lockkeeper"
)

// The methods by which a topic was answered.
const (
	MethodAPI      = "api"
	MethodPaste    = "paste"
	MethodRejected = "rejected" // the topic needs no answer; the text may be empty
)

// A Text is the answer to a topic.
type Text struct {
	Prompt string    `json:"prompt"`
	Method string    `json:"method"`
	By     string    `json:"by"`
	At     time.Time `json:"at"` // zero: the time of writing
	Body   string    `json:"-"`
}

// The header is a comment of one line before the text.
const (
	headerOpen  = "<!-- lockkeeper "
	headerClose = " -->\n"
)

// A header is the content of the comment. Its hash covers the header with an empty hash, and
// the text after it.
type header struct {
	Text
	SHA256 string `json:"sha256"`
}

// comment encodes a header so that nothing in it ends the comment.
func (h header) comment() ([]byte, error) {
	text, err := json.Marshal(h) // Marshal escapes < and >, so the text cannot end the comment
	if err != nil {
		return nil, err
	}
	// In JSON, two hyphens occur only inside a string.
	text = bytes.ReplaceAll(text, []byte("--"), []byte(`-\u002d`))
	return append(append([]byte(headerOpen), text...), headerClose...), nil
}

func (h header) seal(body string) (string, error) {
	h.SHA256 = ""
	open, err := h.comment()
	sum := sha256.Sum256(append(open, body...))
	return hex.EncodeToString(sum[:]), err
}

func (f *Folder) research() *Folder { return f.own(researchDir) }

// ReadText reads the text of a topic, research/<slug>.md. It returns nil if the file is missing
// or empty. A file without a header counts as pasted by a person.
func (f *Folder) ReadText(ctx context.Context, name string) (text *Text, err error) {
	file, err := textName(name)
	if err != nil {
		return nil, err
	}
	p, err := f.research().open(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	data, info, err := p.read(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err = parseText(string(data))
	if err != nil {
		return nil, &MalformedError{Path: p.folder.rel(file), Line: 1, Reason: err.Error(),
			Next: "remove the first line if the text is right, or remove the file"}
	}
	if text != nil && text.At.IsZero() {
		text.At = info.ModTime().UTC()
	}
	return text, nil
}

// parseText parses a file. It returns nil if the file is empty.
func parseText(data string) (*Text, error) {
	if !utf8.ValidString(data) {
		return nil, errors.New("not UTF-8")
	}
	if strings.TrimSpace(data) == "" {
		return nil, nil
	}
	rest, ours := strings.CutPrefix(data, headerOpen)
	if !ours {
		first, _, _ := strings.Cut(data, "\n")
		if strings.HasPrefix(headerOpen, data) || strings.Contains(first, `"sha256":"`) {
			return nil, errors.New("the header is damaged")
		}
		return &Text{Method: MethodPaste, Body: data}, nil
	}
	own, body, whole := strings.Cut(rest, headerClose)
	if !whole {
		return nil, errors.New("the header has no end")
	}
	var h header
	if err := json.Unmarshal([]byte(own), &h); err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	seal, err := h.seal(body)
	if err != nil {
		return nil, err
	}
	if seal != h.SHA256 {
		return nil, fmt.Errorf("header and text have the hash %.12s, but the header says %.12s: it was damaged, or edited by hand", seal, h.SHA256)
	}
	if h.Method != MethodRejected && strings.TrimSpace(body) == "" {
		return nil, nil
	}
	h.Body = body
	return &h.Text, nil
}

// WriteText creates or replaces the text of a topic.
func (f *Folder) WriteText(ctx context.Context, name string, t Text) error {
	file, err := textName(name)
	if err != nil {
		return err
	}
	wrong := func(field, reason string) error {
		return &lockkeeper.InputError{Field: field, Value: name, Reason: reason}
	}
	switch t.Method {
	case MethodRejected:
	case MethodAPI, MethodPaste:
		if strings.TrimSpace(t.Body) == "" {
			return wrong("research", "the text is empty")
		}
	default:
		return wrong("research", fmt.Sprintf("unknown method %q, must be api, paste or rejected", t.Method))
	}
	for field, value := range map[string]string{"prompt": t.Prompt, "by": t.By, "text": t.Body} {
		if !utf8.ValidString(value) {
			return wrong(field, "not UTF-8")
		}
	}
	if t.At.IsZero() {
		t.At = time.Now()
	}
	t.At = t.At.Round(0).UTC()
	h := header{Text: t}
	if h.SHA256, err = h.seal(t.Body); err != nil {
		return err
	}
	open, err := h.comment()
	if err != nil {
		return err
	}
	return f.research().change(ctx, true, func(p *location) error {
		return p.write(ctx, file, append(open, t.Body...))
	})
}

// blobPerm lets only the owner read a kept file, because the original may not be readable by
// others.
const blobPerm fs.FileMode = 0o600

func (f *Folder) files() *Folder { return f.own(filesDir) }

// Keep stores a content under its hash. Storing it again changes nothing.
func (f *Folder) Keep(ctx context.Context, r io.Reader) (sum [32]byte, err error) {
	data, err := io.ReadAll(r) // read before the lock, because reading may take long
	if err != nil {
		return sum, err
	}
	sum = sha256.Sum256(data)
	return sum, f.files().change(ctx, true, func(p *location) error {
		there, err := p.proven(ctx, sum)
		var bad *MalformedError
		switch {
		case err == nil:
			return errors.Join(there.Close(), p.ops.SyncDir(p.folder.dir())) // the writer may have died before the sync
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
