package gate

import (
	"bytes"
	"io"
	"io/fs"
	"os"

	"lockkeeper"
)

// Change is one wanted change of one path. Put, PutFile, Delete, Chmod and
// Rename make them; Base and Mode may be set afterwards.
type Change struct {
	Path   string // any spelling relative to the root
	Body   Body   // the new content; nil leaves the content as it is
	Mode   *fs.FileMode
	Delete bool

	// Base is what the path must hold for the change to land. Left nil, it is
	// what the grant itself landed there last, else what is there when Commit
	// begins.
	Base *lockkeeper.Version

	// Stored says that the caller keeps the content whether the change lands or not.
	// Otherwise the gate puts content that does not land on the rescue shelf.
	Stored bool

	from string // of a renamed file: whose content and mode it gets
}

// Body opens new content, from its beginning, as often as it is called.
type Body func() (io.ReadCloser, error)

// Bytes is a Body of content in memory.
func Bytes(content []byte) Body {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// File is a Body read from a file elsewhere, however large.
func File(path string) Body {
	return func() (io.ReadCloser, error) { return os.Open(path) }
}

// Put creates or replaces a file. A replaced one keeps its permissions, a new
// one gets 0644, unless Mode says otherwise.
func Put(path string, content []byte) Change { return Change{Path: path, Body: Bytes(content)} }

// PutFile is Put with the content of a file elsewhere.
func PutFile(path, source string) Change { return Change{Path: path, Body: File(source)} }

// Delete removes a file.
func Delete(path string) Change { return Change{Path: path, Delete: true} }

// Chmod changes the permissions of a file.
func Chmod(path string, mode fs.FileMode) Change { return Change{Path: path, Mode: &mode} }

// Rename moves a file to a name that is free. Both names must be covered.
func Rename(from, to string) []Change {
	return []Change{{Path: to, from: from, Base: &lockkeeper.Version{}}, Delete(from)}
}
