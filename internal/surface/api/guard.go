package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"lockkeeper"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/web"
)

// ServeHTTP passes a request through the layers to its handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.TryRLock() { // the server has closed
		panic(http.ErrAbortHandler)
	}
	defer s.handlers.RUnlock()
	began := time.Now()
	secure(w.Header())
	out, end := compressing(w, r)
	defer end()
	seen := &watched{ResponseWriter: out}
	c := &call{w: seen, control: http.NewResponseController(w), r: r}
	defer func() {
		if wrong := recover(); wrong != nil && wrong != http.ErrAbortHandler {
			s.opt.Log.Error("a handler panicked", "route", c.label(), "panic", fmt.Sprint(wrong), "stack", string(debug.Stack()))
			if seen.status == 0 {
				fail(seen, r, fmt.Errorf("internal error; the log of the server has details"))
			}
		}
		s.metrics.answered(c.label(), seen.status, time.Since(began))
	}()
	if err := s.answer(c); err != nil && err != errAnswered && !isGone(r, err) && !s.failPage(c, err) {
		if status := fail(seen, c.r, err); status == http.StatusInternalServerError {
			s.opt.Log.Error("a request failed", "route", c.label(), "who", c.who.Name, "error", err)
		}
	}
}

// label returns the route of a request for log and metrics. It never returns the address,
// which clients choose.
func (c *call) label() string {
	if c.route == nil {
		return "none"
	}
	return c.route.key()
}

// answer passes a request through the layers in this order.
func (s *Server) answer(c *call) error {
	for _, layer := range []func(*call) error{s.checkPeer, s.checkHost, checkPath, s.locate, s.identify, checkOrigin, checkRole, checkQuery} {
		if err := layer(c); err != nil {
			return err
		}
	}
	if c.route.open { // the body is read first, so that slow unauthenticated clients take no place
		if err := s.readBody(c, s.opt.Limits.StrangerBody); err != nil {
			return err
		}
	}
	leave, err := s.rooms[c.route.room].enter(c.r.Context())
	if err != nil {
		return err
	}
	defer leave()
	if !c.route.open {
		limit := s.opt.Limits.Body
		if c.route.large {
			limit = s.opt.Limits.LargeBody
		}
		if err := s.readBody(c, limit); err != nil {
			return err
		}
	}
	if c.r.Method != http.MethodPost || c.route.open {
		return c.route.serve(s, c)
	}
	if c.route.whole && c.route.room != roomWaits { // a client that disconnects stops waiting for locks
		ctx, end := s.toItsEnd(c.r.Context())
		defer end()
		c.r = c.r.WithContext(ctx)
	}
	return s.once.do(s, c)
}

// toItsEnd returns a context that ends with the server, not when the client disconnects. So
// no act is left half done, and a retry with the same key gets its answer.
func (s *Server) toItsEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(s.running, cancel)
	return ctx, func() {
		forget()
		cancel()
	}
}

// secure sets the security headers: browsers run only scripts of this server, and neither
// frame, cache nor sniff a response.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers would send our own forms with the origin null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// checkPath refuses paths that are not in canonical form.
func checkPath(c *call) error {
	path := c.r.URL.Path
	wrong := !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "\\\x00")
	for i, part := range strings.Split(path, "/") {
		wrong = wrong || part == "." || part == ".." || part == "" && i > 0 && path != "/"
	}
	if wrong {
		return &refusal{code: codeNotFound, reason: "the path has an empty part, a dot part or a backslash"}
	}
	if !utf8.ValidString(path) {
		return &lockkeeper.InputError{Field: "path", Value: strings.ToValidUTF8(path, "?"), Reason: "not UTF-8", Next: "send text as UTF-8"}
	}
	return checkQueryText(c.r.URL.RawQuery)
}

func (s *Server) locate(c *call) (err error) {
	c.route, c.r, err = s.find(c.r)
	if err == nil {
		return nil
	}
	who, by, known, _ := s.whoIs(c.r)
	if !known { // do not reveal routes to strangers
		return stranger(c)
	}
	c.know(who, by)
	return err
}

var errStranger = &refusal{code: codeUnauthorized, reason: "not logged in", next: "log in with the link of `lockkeeper login`, or send a token of `lockkeeper token add` as Authorization: Bearer"}

// identify sets the person of a request.
func (s *Server) identify(c *call) error {
	who, by, known, err := s.whoIs(c.r)
	switch {
	case err != nil:
		return err
	case known:
		c.know(who, by)
	case !c.route.open:
		return stranger(c)
	}
	return nil
}

// know sets the person of a request.
func (c *call) know(who access.Person, by proof) {
	c.who, c.proof = who, by
	c.r = c.r.WithContext(access.With(c.r.Context(), who))
}

// stranger answers a request of an unknown person. A browser gets the login page, which says how to
// log in, whether the address exists or not.
func stranger(c *call) error {
	isPage := wantsPage(c.r) || c.route != nil && c.route.media == mediaPage && c.r.Method == http.MethodGet
	if !isPage || c.r.Header.Get(web.PartHeader) != "" {
		return errStranger
	}
	http.Redirect(c.w, c.r, "/login", http.StatusSeeOther)
	return errAnswered
}

// wantsPage reports whether a request is that of a browser for a page. A client that sends a token
// gets JSON.
func wantsPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Authorization") == "" && strings.Contains(r.Header.Get("Accept"), mediaPage)
}

// failPage answers a person's browser with a page that says why its request failed. It reports
// false if the request is not of that kind.
func (s *Server) failPage(c *call, err error) bool {
	var refused *refusal
	if c.proof != proofSession || !wantsPage(c.r) || !errors.As(err, &refused) {
		return false
	}
	leave, busy := s.rooms[roomUsual].enter(c.r.Context())
	if busy != nil {
		return false
	}
	defer leave()
	what, next := refused.reason, refused.next
	if refused.code == codeNotFound {
		what, next = "no page has the address "+c.r.URL.Path, "choose a page in the menu"
	}
	if refused.allow != "" {
		c.w.Header().Set("Allow", refused.allow)
	}
	s.pages.Refuse(c.w, c.r, statuses[refused.code], what, next)
	return true
}

// errAnswered means that a layer has answered the request.
var errAnswered = errors.New("answered")

// whoIs returns the person whose token or session a request carries.
func (s *Server) whoIs(r *http.Request) (who access.Person, by proof, known bool, err error) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return s.byPassword(r)
		}
		who, known, err = s.accounts.ByToken(strings.TrimSpace(token))
		return who, proofToken, known, err
	}
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return who, proofNone, false, nil // the request has no session
	}
	who, known, err = s.accounts.BySession(cookie.Value, s.opt.Now())
	return who, proofSession, known, err
}

// checkOrigin refuses requests that a page of another site makes a browser send. Browsers do
// not send tokens by themselves, so requests with one pass.
func checkOrigin(c *call) error {
	if c.proof == proofToken {
		return nil
	}
	site, origin := c.r.Header.Get("Sec-Fetch-Site"), c.r.Header.Get("Origin")
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
		opened := c.r.Header.Get("Sec-Fetch-Mode") == "navigate" && c.r.Header.Get("Sec-Fetch-Dest") == "document"
		if (site == "cross-site" || site == "same-site") && !opened {
			return &refusal{code: codeOrigin, reason: "request from a page of another site"}
		}
		return nil
	}
	same := origin == "https://"+c.r.Host || origin == "http://"+c.r.Host && c.r.TLS == nil // a proxy may speak TLS for us
	switch {
	case site != "" && site != "same-origin", origin != "" && !same:
		return &refusal{code: codeOrigin, reason: "request from a page of another site", next: "use a page of this server"}
	case site == "" && origin == "":
		return &refusal{code: codeOrigin, reason: "a request with a session cookie has no Origin", next: "send a token as Authorization: Bearer"}
	}
	return nil
}

func checkRole(c *call) error {
	if c.route.open || c.who.Role.Meets(c.route.need) {
		return nil
	}
	return &refusal{code: codeForbidden, reason: fmt.Sprintf("%s has the role %s, and this needs %s", c.who.Name, c.who.Role, c.route.need), next: "ask an admin for another role: lockkeeper token add NAME --role ROLE"}
}

// checkQuery refuses a query on routes that take none. The client may expect an effect that
// it would not have.
func checkQuery(c *call) error {
	if c.route.query != nil || c.route.media == mediaPage || c.route.open {
		return nil
	}
	_, err := decodeQuery[nothing](c.r.URL.RawQuery)
	return err
}

// readBody reads the body into memory, so that a slow sender does not delay the handler.
func (s *Server) readBody(c *call, limit int64) error {
	if err := c.control.SetWriteDeadline(time.Now().Add(s.opt.Limits.Write)); err != nil {
		return err
	}
	if c.r.Body == nil || c.r.Body == http.NoBody {
		return nil
	}
	if err := c.control.SetReadDeadline(time.Now().Add(s.opt.Limits.Read)); err != nil {
		return err
	}
	whole := c.r.Body
	body, err := io.ReadAll(http.MaxBytesReader(c.w, whole, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		// Many clients send all of it before they read the response. Discard some more, so
		// that they get the response and not a connection error.
		_, _ = io.CopyN(io.Discard, whole, s.opt.Limits.LargeBody) // an error does not change the response
		return &refusal{code: codeTooLarge, reason: fmt.Sprintf("the body is larger than %d bytes", limit), next: "split the request"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{code: codeTooLarge, reason: "the body was not complete after " + s.opt.Limits.Read.String()}
	case err != nil:
		return wrongBody("", "the body is incomplete: "+err.Error())
	}
	if err := checkText(c, body); err != nil {
		return err
	}
	c.r.Body = io.NopCloser(bytes.NewReader(body))
	return c.control.SetReadDeadline(time.Time{}) // a deadline would end the request while the handler runs
}

// watched records the status of a response.
type watched struct {
	http.ResponseWriter
	status int
}

func (w *watched) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController access to the wrapped writer.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A roomName is a class of requests with its own concurrency limit, so that long requests do not block short
// ones.
type roomName uint8

const (
	roomUsual   roomName = iota
	roomLarge            // large bodies
	roomWaits            // waits for locks
	roomStreams          // event streams
	roomOpen             // unauthenticated requests
)

// A room limits the number of concurrent requests of one class.
type room struct {
	places chan struct{}
	wait   time.Duration // longest wait for a place
	what   string
}

func newRoom(size int, wait time.Duration, what string) *room {
	return &room{places: make(chan struct{}, size), wait: wait, what: what}
}

// enter takes a place in the room, or returns an error if none becomes free in time. The caller must call leave.
func (m *room) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-m.places }
	select {
	case m.places <- struct{}{}:
		return leave, nil
	default:
	}
	timer := time.NewTimer(m.wait)
	defer timer.Stop()
	select {
	case m.places <- struct{}{}:
		return leave, nil
	case <-timer.C:
		return nil, &refusal{code: codeBusy, reason: "too many " + m.what + " at once", next: "try again in a moment", after: 2 * time.Second}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (m *room) taken() int { return len(m.places) }
