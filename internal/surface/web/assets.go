package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
)

//go:embed assets templates
var embedded embed.FS

// assets holds the files that pages need. Each URL contains a hash of the content, so that browsers can cache
// the file forever.
type assets struct {
	files map[string]asset
}

type asset struct {
	body    []byte
	kind    string // its content type
	version string
}

// kinds maps file extensions to content types. The mapping of the operating system may differ.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

func readAssets() (*assets, error) {
	dir, err := fs.Sub(embedded, "assets")
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	list := &assets{files: map[string]asset{}}
	for _, e := range entries {
		body, err := fs.ReadFile(dir, e.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		kind, ok := kinds[path.Ext(e.Name())]
		if !ok {
			return nil, fmt.Errorf("asset %s: its type is not known", e.Name())
		}
		list.files[e.Name()] = asset{body: body, kind: kind, version: hex.EncodeToString(sum[:6])}
	}
	return list, nil
}

// url returns the URL of a file.
func (a *assets) url(name string) (string, error) {
	f, ok := a.files[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %s", name)
	}
	return "/assets/" + name + "?v=" + f.version, nil
}

// asset serves a file.
func (d *Dashboard) asset(w http.ResponseWriter, r *http.Request) {
	f, ok := d.files.files[r.PathValue("file")]
	if !ok {
		d.problem(w, r, http.StatusNotFound, "There is no such file", "go to the first page")
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	if r.FormValue("v") == f.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Length", fmt.Sprint(len(f.body)))
	_, _ = w.Write(f.body) // the browser has disconnected
}
