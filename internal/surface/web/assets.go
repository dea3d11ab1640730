package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
)

//go:embed assets templates
var embedded embed.FS

// kinds maps file extensions to content types. The mapping of the operating system may differ.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// assetURL returns the URL of a file that pages need. The URL contains a hash of the content, so that browsers can
// cache the file forever.
func assetURL(name string) (string, error) {
	body, err := embedded.ReadFile("assets/" + name)
	return "/assets/" + name + "?v=" + versionOf(body), err
}

func versionOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:6])
}

func (d *Dashboard) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	kind := kinds[path.Ext(name)]
	body, err := embedded.ReadFile("assets/" + name)
	if err != nil || kind == "" {
		d.problem(w, r, http.StatusNotFound, "There is no such file", "go to the first page")
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	if r.FormValue("v") == versionOf(body) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache") // the browser asks whether its copy is current
	}
	tag := `W/"` + versionOf(body) + `"`
	h.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the browser has disconnected
}
