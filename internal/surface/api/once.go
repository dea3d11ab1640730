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

// Limits of the stored answers to repeated requests.
const (
	onceFor      = 24 * time.Hour
	onceAnswers  = 10_000
	onceBytes    = 32 << 20
	onceLargest  = 1 << 20 // limit of one answer; a larger one is not stored
	onceHeader   = "Idempotency-Key"
	onceField    = "idempotency_key" // field of a form
	onceKeyRules = "1 to 200 letters, digits, dots, dashes, underscores and colons"
)

var onceKey = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,200}$`)

// once executes a request with an idempotency key once, even if it is repeated after a double
// click or a lost connection. The stored answers end with the server. After that, the
// versions in forms prevent a second effect.
type once struct {
	now func() time.Time

	mu    sync.Mutex
	kept  map[onceName]*answered
	order []*answered // answers, oldest first; includes dropped ones
	bytes int
}

// onceName identifies a request: the id of the person, the address and the key.
type onceName struct{ who, address, key string }

type answered struct {
	name   onceName
	body   [sha256.Size]byte // hash of the request body
	at     time.Time
	done   chan struct{} // closed when the fields below are set
	failed bool          // no answer is stored: callers that wait must execute it
	answer recorded
}

func newOnce(now func() time.Time) *once {
	return &once{now: now, kept: map[onceName]*answered{}}
}

// do executes a request, or replays the stored answer to the same request.
func (o *once) do(s *Server, c *call) error {
	body, err := io.ReadAll(c.r.Body) // readBody has the body in memory
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
			c.w.Header().Set("Idempotent-Replayed", "true")
			a.answer.replay(c.w)
			return nil
		}
	}
}

// keyOf returns the idempotency key of a request, or "" if it has none.
func keyOf(r *http.Request, body []byte) string {
	if key := r.Header.Get(onceHeader); key != "" {
		return key
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != mediaForm {
		return ""
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "" // the handler reports the error
	}
	return form.Get(onceField)
}

// begin returns the entry of a request, and whether the caller has created it.
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

// sweep drops answers that are too old, and the oldest if there are too many. Requests in
// progress move to the end of the order.
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
	o.bytes -= a.answer.body.Len()
}

// run executes a request and stores the answer. It does not store server errors, nor
// refusals after the client disconnected: a retry may succeed.
func (o *once) run(s *Server, c *call, a *answered) error {
	said := &recorded{header: http.Header{}}
	outer := c.w
	c.w = said
	keep := false
	defer func() { o.end(a, said, keep) }() // runs also when the handler panics
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
		a.answer = *said
		o.bytes += a.answer.body.Len()
	} else {
		o.drop(a)
	}
	close(a.done)
}

// recorded is a buffered answer.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header { return r.header }

func (r *recorded) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorded) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// replay sends the answer.
func (r *recorded) replay(w http.ResponseWriter) {
	r.WriteHeader(http.StatusOK)
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	w.Write(r.body.Bytes())
}
