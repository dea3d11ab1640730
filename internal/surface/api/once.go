package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	"lockkeeper"
)

// How much is remembered of requests that may come twice.
const (
	onceFor      = 24 * time.Hour
	onceAnswers  = 10_000
	onceBytes    = 32 << 20
	onceLargest  = 1 << 20 // of one answer; a larger one is not kept
	onceHeader   = "Idempotency-Key"
	onceField    = "idempotency_key" // of a form
	onceKeyRules = "1 to 200 letters, digits, dots, dashes, underscores and colons"
)

var onceKey = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,200}$`)

// once does what a request asks once, however often it comes: after a double click, or a
// connection that broke before the answer came. What is remembered ends with the server;
// what was seen of a page (its versions) guards beyond that.
type once struct {
	now func() time.Time

	mu    sync.Mutex
	kept  map[onceName]*answered
	order []*answered // the oldest first; some may not be kept any more
	bytes int
}

// onceName is the id of the person whose request it is, for what, and its key.
type onceName struct{ who, address, key string }

// answered is a request, and what was answered to it.
type answered struct {
	name   onceName
	body   [sha256.Size]byte // of the request
	at     time.Time
	done   chan struct{} // closed once the rest is there
	failed bool          // nothing was kept: whoever waits has to ask by themselves

	status int
	header http.Header
	answer []byte
}

func newOnce(now func() time.Time) *once {
	return &once{now: now, kept: map[onceName]*answered{}}
}

// do answers a request, with what was answered before if it is the same.
func (o *once) do(s *Server, c *call) error {
	body, err := io.ReadAll(c.r.Body) // which is in memory already
	if err != nil {
		return err
	}
	c.r.Body = io.NopCloser(bytes.NewReader(body))
	key := keyOf(c.r, body)
	if key == "" {
		return c.route.serve(s, c)
	}
	if !onceKey.MatchString(key) {
		return &lockkeeper.InputError{Field: onceHeader, Value: key, Reason: "not " + onceKeyRules, Next: "use a new UUID for every act"}
	}
	name, sum := onceName{c.who.ID(), c.r.URL.RequestURI(), key}, sha256.Sum256(body)
	for {
		a, mine := o.begin(name, sum)
		if a.body != sum {
			return &refusal{code: codeReused, reason: "the key " + key + " was used with another body", next: "use a new key for every act"}
		}
		if mine {
			return o.run(s, c, a)
		}
		select {
		case <-a.done:
		case <-c.r.Context().Done():
			return context.Cause(c.r.Context())
		}
		if !a.failed {
			a.replay(c.w)
			return nil
		}
	}
}

// keyOf is the key of a request; empty: it has none, and is done as often as it comes.
func keyOf(r *http.Request, body []byte) string {
	if key := r.Header.Get(onceHeader); key != "" {
		return key
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != mediaForm {
		return ""
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "" // its handler says what is wrong with it
	}
	return form.Get(onceField)
}

// begin finds what is known of a request, or else notes that it is under way.
func (o *once) begin(name onceName, sum [sha256.Size]byte) (a *answered, mine bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sweep()
	if known := o.kept[name]; known != nil {
		return known, false
	}
	a = &answered{name: name, body: sum, at: o.now(), done: make(chan struct{})}
	o.kept[name] = a
	o.order = append(o.order, a)
	return a, true
}

// sweep forgets what is too old, and the oldest of what is too much. What is under way
// stays, behind the others.
func (o *once) sweep() {
	for range len(o.order) {
		a := o.order[0]
		if o.kept[a.name] == a {
			if len(o.kept) <= onceAnswers && o.bytes <= onceBytes && o.now().Sub(a.at) < onceFor {
				return
			}
			select {
			case <-a.done:
				o.drop(a)
			default:
				o.order = append(o.order, a)
			}
		}
		o.order = o.order[1:]
	}
}

func (o *once) drop(a *answered) {
	delete(o.kept, a.name)
	o.bytes -= len(a.answer)
}

// run does what is asked, and keeps the answer. One that says that the server failed, or
// that nothing was done because nobody waits for it any more, is not kept: asking again may
// go better.
func (o *once) run(s *Server, c *call, a *answered) error {
	said := &recorded{header: http.Header{}}
	outer := c.w
	c.w = said
	keep := false
	defer func() { // also when the handler panics
		o.end(a, said, keep)
	}()
	if err := c.route.serve(s, c); err != nil {
		if isGone(c.r, err) {
			return err
		}
		fail(said, c.r, err)
	}
	ended := said.status < http.StatusBadRequest || said.status < http.StatusInternalServerError && c.r.Context().Err() == nil
	keep = ended && said.body.Len() <= onceLargest
	c.w = outer
	said.replay(outer)
	return nil
}

func (o *once) end(a *answered, said *recorded, keep bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a.failed = !keep
	if keep {
		a.status, a.header, a.answer = said.status, said.header, said.body.Bytes()
		o.bytes += len(a.answer)
	} else {
		o.drop(a)
	}
	close(a.done)
}

// replay gives an answer once more.
func (a *answered) replay(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Idempotent-Replayed", "true")
	w.WriteHeader(a.status)
	w.Write(a.answer)
}

// recorded is an answer that is not sent yet.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorded) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorded) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorded) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// replay sends it.
func (r *recorded) replay(w http.ResponseWriter) {
	r.WriteHeader(http.StatusOK)
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	w.Write(r.body.Bytes())
}
