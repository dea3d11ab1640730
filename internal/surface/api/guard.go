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
)

// ServeHTTP lets a request through the layers to its handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.handlers.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.handlers.run.Done()
	began := time.Now()
	secure(w.Header())
	seen := &watched{ResponseWriter: w}
	c := &call{w: seen, control: http.NewResponseController(w), r: r}
	defer func() {
		if wrong := recover(); wrong != nil && wrong != http.ErrAbortHandler {
			s.opt.Log.Error("a handler panicked", "route", c.label(), "panic", fmt.Sprint(wrong), "stack", string(debug.Stack()))
			if seen.status == 0 {
				fail(seen, r, fmt.Errorf("something went wrong here, which the log of the server tells more about"))
			}
		}
		s.metrics.answered(c.label(), seen.status, time.Since(began))
	}()
	if err := s.answer(c); err != nil && err != errAnswered && !isGone(r, err) {
		if status := fail(seen, c.r, err); status == http.StatusInternalServerError {
			s.opt.Log.Error("a request failed", "route", c.label(), "who", c.who.Name, "error", err)
		}
	}
}

// label is the name of a request's route, for the log and the metrics: never its address,
// which others choose.
func (c *call) label() string {
	if c.route == nil {
		return "none"
	}
	return c.route.key()
}

// answer takes a request through the layers, in this order.
func (s *Server) answer(c *call) error {
	for _, layer := range []func(*call) error{s.checkPeer, s.checkHost, checkPath, s.locate, s.identify, checkOrigin, checkRole, checkQuery} {
		if err := layer(c); err != nil {
			return err
		}
	}
	if c.route.open { // what strangers send is little, and who sends it slowly keeps no other out
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
	if c.route.whole && c.route.room != roomWaits { // whoever leaves a line gives their place up
		ctx, end := s.toItsEnd(c.r.Context())
		defer end()
		c.r = c.r.WithContext(ctx)
	}
	return s.once.do(s, c)
}

// toItsEnd is for an act that goes on when whoever asked for it is gone: half of one would
// be worse than either, and who asks again with the same key is to get the answer. It ends
// with the server.
func (s *Server) toItsEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(s.running, cancel)
	return ctx, func() {
		forget()
		cancel()
	}
}

// secure says to a browser what an answer may never do: run anything that is not a file of
// this server, be shown in somebody else's page, be kept, or be taken for something else.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // without any, forms of our own would come from the origin null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// checkPath refuses addresses that mean another one than they say.
func checkPath(c *call) error {
	path := c.r.URL.Path
	wrong := !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "\\\x00")
	for i, part := range strings.Split(path, "/") {
		wrong = wrong || part == "." || part == ".." || part == "" && i > 0 && path != "/"
	}
	if wrong {
		return &refusal{code: codeNotFound, reason: "the address leads nowhere: it has an empty part, a dot or a backslash in it"}
	}
	if !utf8.ValidString(path) {
		return &lockkeeper.InputError{Field: "path", Value: strings.ToValidUTF8(path, "?"), Reason: "not UTF-8", Next: "send text as UTF-8"}
	}
	return checkQueryText(c.r.URL.RawQuery)
}

// locate finds the route.
func (s *Server) locate(c *call) (err error) {
	c.route, c.r, err = s.find(c.r)
	if err == nil {
		return nil
	}
	if _, _, known, _ := s.whoIs(c.r); !known {
		return errStranger // who may not be here is not told what there is
	}
	return err
}

var errStranger = &refusal{code: codeUnauthorized, reason: "nobody knows who you are", next: "log in with the link of `lockkeeper login`, or send a token of `lockkeeper token add` as Authorization: Bearer"}

// identify finds out who asks.
func (s *Server) identify(c *call) error {
	who, by, known, err := s.whoIs(c.r)
	switch {
	case err != nil:
		return err
	case known:
		c.who, c.proof = who, by
		c.r = c.r.WithContext(access.With(c.r.Context(), who))
	case c.route.open:
	case c.route.media == mediaPage && c.r.Method == http.MethodGet && c.r.Header.Get("HX-Request") == "":
		http.Redirect(c.w, c.r, "/login", http.StatusSeeOther)
		return errAnswered
	default:
		return errStranger
	}
	return nil
}

// errAnswered ends the way of a request that was answered on it.
var errAnswered = errors.New("answered")

// whoIs reads who a request says it is from, and holds it against the book.
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
		return who, proofNone, false, nil // there is none
	}
	who, known, err = s.accounts.BySession(cookie.Value, s.opt.Now())
	return who, proofSession, known, err
}

// checkOrigin refuses what another page makes a browser ask. A token is no secret of the
// browser's, so whoever sends one means it.
func checkOrigin(c *call) error {
	if c.proof == proofToken {
		return nil
	}
	site, origin := c.r.Header.Get("Sec-Fetch-Site"), c.r.Header.Get("Origin")
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
		opened := c.r.Header.Get("Sec-Fetch-Mode") == "navigate" && c.r.Header.Get("Sec-Fetch-Dest") == "document"
		if (site == "cross-site" || site == "same-site") && !opened {
			return &refusal{code: codeOrigin, reason: "another page asks for this"}
		}
		return nil
	}
	same := origin == "https://"+c.r.Host || origin == "http://"+c.r.Host && c.r.TLS == nil // a proxy may speak TLS for us
	switch {
	case site != "" && site != "same-origin", origin != "" && !same:
		return &refusal{code: codeOrigin, reason: "another page asks for this", next: "do it on a page of this server"}
	case site == "" && origin == "":
		return &refusal{code: codeOrigin, reason: "a session came without the origin of its page", next: "send a token as Authorization: Bearer"}
	}
	return nil
}

// checkRole refuses a request whose role is insufficient.
func checkRole(c *call) error {
	if c.route.open || c.who.Role.Meets(c.route.need) {
		return nil
	}
	return &refusal{code: codeForbidden, reason: fmt.Sprintf("%s has the role %s, and this needs %s", c.who.Name, c.who.Role, c.route.need), next: "ask somebody who may, or for another token"}
}

// checkQuery refuses what follows the ? where nothing is asked so: who says more than is
// understood may mean something else than what would be done.
func checkQuery(c *call) error {
	if c.route.query != nil || c.route.media == mediaPage || c.route.open {
		return nil
	}
	_, err := decodeQuery[nothing](c.r.URL.RawQuery)
	return err
}

// readBody takes a body into memory, so that whoever sends it slowly holds up nobody who
// acts on it.
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
		// Many send all of it before they read the answer. One that is cut off learns nothing,
		// so some more is taken, and thrown away.
		_, _ = io.CopyN(io.Discard, whole, s.opt.Limits.LargeBody) // however it ends
		return &refusal{code: codeTooLarge, reason: fmt.Sprintf("the body is larger than %d bytes", limit), next: "send less at once"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{code: codeTooLarge, reason: "the body did not come whole within " + s.opt.Limits.Read.String()}
	case err != nil:
		return wrongBody("", "it did not come whole: "+err.Error())
	}
	if err := checkText(c, body); err != nil {
		return err
	}
	c.r.Body = io.NopCloser(bytes.NewReader(body))
	return c.control.SetReadDeadline(time.Time{}) // it would end the request while it is worked on
}

// watched remembers what was answered.
type watched struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
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

// Unwrap lets http.ResponseController through.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
