package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"lockkeeper/internal/surface/access"
)

// Long texts are compressed for clients that accept it. Streams, short answers and answers to other
// clients are not.
func TestCompressed(t *testing.T) {
	s := newScene(t)
	zipped := header("Accept-Encoding", "br, gzip")
	plain := s.as(access.Viewer, "GET", "/board", nil, header("Accept-Encoding", "identity")).want(http.StatusOK)
	page := s.as(access.Viewer, "GET", "/board", nil, zipped).want(http.StatusOK)
	z, err := gzip.NewReader(bytes.NewReader(page.body))
	must(t, err)
	text, err := io.ReadAll(z)
	must(t, err)
	if page.header.Get("Content-Encoding") != "gzip" || page.header.Get("Content-Length") != strconv.Itoa(len(page.body)) || len(page.body) > len(text)/2 || len(text) < len(plain.body)/2 {
		t.Errorf("%d bytes of %d: %v", len(page.body), len(text), page.header)
	}
	for _, other := range []answer{plain, s.as(access.Viewer, "GET", "/healthz", nil, zipped), s.as(access.Viewer, "HEAD", "/board", nil, zipped), s.as(access.Viewer, "GET", "/board", nil, header("Accept-Encoding", "gzip;q=0"))} {
		if other.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", other.asked, other.header)
		}
	}
	l := s.listen(zipped)
	defer l.cancel()
	s.note(1)
	l.next()
}

// A stream of kinds names each kind of the events once.
func TestStreamOfKinds(t *testing.T) {
	s := newScene(t)
	l := s.listen(func(r *http.Request) { r.URL.RawQuery = "kinds=true&after=0" })
	defer l.cancel()
	s.note(300)
	last := s.last()
	for got, asked := uint64(0), 0; got < last; asked++ {
		ev := l.next()
		if ev.kind != "kinds" || !strings.Contains(ev.data, `"decided"`) || strings.Count(ev.data, "decided") > 1 || asked > 100 {
			t.Fatalf("message %d: %+v", asked, ev)
		}
		seq, err := strconv.ParseUint(ev.id, 10, 64)
		must(t, err)
		got = seq
	}
}
