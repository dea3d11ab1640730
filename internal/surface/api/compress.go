package api

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

const (
	leastZipped = 1 << 10 // smaller responses fit into a packet anyway
	mostKept    = 1 << 20 // bytes of a compressed response in memory
)

// zippers has gzip writers for reuse, because each needs much memory.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.DefaultCompression) // the level is valid
	return z
}}

// A compressed is a response that is compressed if it is long enough, and of a type that shrinks.
// Event streams are not: each event must leave at once.
type compressed struct {
	http.ResponseWriter
	status int
	zip    *gzip.Writer // nil: the response is not compressed
	sent   bool         // the header has been sent
	kept   bytes.Buffer // the compressed response so far, to announce its length
}

// compressing returns a writer for a request, and a function that ends the response.
func compressing(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, func()) {
	if r.Method == http.MethodHead || !acceptsGzip(r.Header.Get("Accept-Encoding")) {
		return w, func() {}
	}
	c := &compressed{ResponseWriter: w}
	return c, c.end
}

// acceptsGzip reports whether a client accepts gzip without reservations.
func acceptsGzip(accepted string) bool {
	for part := range strings.SplitSeq(accepted, ",") {
		name, quality, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == "gzip" {
			quality = strings.ReplaceAll(quality, " ", "")
			return quality != "q=0" && !strings.HasPrefix(quality, "q=0.0")
		}
	}
	return false
}

// shrinks reports whether content of a type becomes smaller.
func shrinks(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	switch kind {
	case "application/json", "application/problem+json", "image/svg+xml":
		return true
	case "text/event-stream":
		return false
	}
	return strings.HasPrefix(kind, "text/")
}

func (c *compressed) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	if status < 200 || !shrinks(c.Header().Get("Content-Type")) { // such as the header of a stream, which leaves at once
		c.send()
	}
}

func (c *compressed) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	h := c.Header()
	if c.zip == nil && !c.sent {
		if len(b) < leastZipped || h.Get("Content-Encoding") != "" {
			c.send()
		} else {
			c.zip = zippers.Get().(*gzip.Writer)
			c.zip.Reset(&c.kept)
			h.Set("Content-Encoding", "gzip")
			h.Add("Vary", "Accept-Encoding")
			h.Del("Content-Length")
		}
	}
	if c.zip == nil {
		return c.ResponseWriter.Write(b)
	}
	if n, err := c.zip.Write(b); err != nil || c.kept.Len() < mostKept {
		return n, err
	}
	return len(b), c.pass()
}

// send sends the header.
func (c *compressed) send() {
	if !c.sent && c.status != 0 {
		c.sent = true
		c.ResponseWriter.WriteHeader(c.status)
	}
}

// pass sends what is compressed so far.
func (c *compressed) pass() error {
	c.send()
	_, err := c.ResponseWriter.Write(c.kept.Bytes())
	c.kept.Reset()
	return err
}

func (c *compressed) end() {
	if c.zip == nil {
		c.send()
		return
	}
	if err := c.zip.Close(); err == nil {
		if !c.sent {
			c.Header().Set("Content-Length", strconv.Itoa(c.kept.Len()))
		}
		_ = c.pass() // the client has disconnected
	}
	zippers.Put(c.zip)
	c.zip = nil
}

// Unwrap gives http.ResponseController access to the wrapped writer.
func (c *compressed) Unwrap() http.ResponseWriter { return c.ResponseWriter }
