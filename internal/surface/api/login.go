package api

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"math"
	"net"
	"net/http"
	"path"
	"sync"
	"time"

	"lockkeeper/internal/surface/access"
)

//go:embed assets
var assets embed.FS

// loginPage parses the login template on first use. Every command of the program links this package, and a hook
// has only milliseconds to start.
var loginPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.ParseFS(assets, "assets/login.html"))
})

func showLogin(_ *Server, c *call) error { return writeLogin(c, http.StatusOK, "") }

func writeLogin(c *call, status int, wrong string) error {
	var page bytes.Buffer
	if err := loginPage().Execute(&page, struct{ Wrong string }{wrong}); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	c.w.WriteHeader(status)
	c.w.Write(page.Bytes())
	return nil
}

func loginAsset(_ *Server, c *call) error {
	name := c.r.PathValue("asset")
	body, err := assets.ReadFile("assets/" + name)
	kind, known := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}[path.Ext(name)]
	if err != nil || !known {
		return &refusal{code: codeNotFound, reason: "there is no such file"}
	}
	c.w.Header().Set("Content-Type", kind)
	c.w.Write(body)
	return nil
}

// logIn exchanges a ticket or a token for a session. A correct secret logs in even after many failed attempts:
// many people can share one address, and none of them may lock out another.
func logIn(s *Server, c *call) error {
	secret := c.r.PostFormValue("secret")
	who, known, err := s.accounts.ByToken(secret)
	if err == nil && !known {
		who, known, err = s.accounts.Redeem(secret, s.opt.Now())
	}
	switch {
	case err != nil:
		return err
	case !known:
		if wait := s.logins.take(addressOf(c.r), s.opt.Now()); wait > 0 {
			c.w.Header().Set("Retry-After", fmt.Sprint(int(math.Ceil(wait.Seconds()))))
			return writeLogin(c, http.StatusTooManyRequests, fmt.Sprintf("Too many failed attempts. Try again in %s.", wait.Round(time.Second)))
		}
		s.opt.Log.Warn("a login failed", "from", addressOf(c.r))
		return writeLogin(c, http.StatusUnauthorized, "This link or token is not valid: it is unknown, was used already, or is older than "+minutes(access.TicketLife)+".")
	}
	until := s.opt.Now().Add(s.opt.Session)
	session, err := s.accounts.StartSession(c.r.Context(), who, s.opt.Now(), until)
	if err != nil {
		return err
	}
	http.SetCookie(c.w, s.cookie(session, until))
	http.Redirect(c.w, c.r, "/", http.StatusSeeOther)
	return nil
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d minutes", int(d.Minutes())) }

// logOut ends the session and deletes the browser's cookie.
func logOut(s *Server, c *call) error {
	if cookie, err := c.r.Cookie(s.cookieName()); err == nil { // otherwise the request carries a token
		if err := s.accounts.EndSession(cookie.Value); err != nil {
			return err
		}
	}
	http.SetCookie(c.w, s.cookie("", time.Unix(1, 0)))
	http.Redirect(c.w, c.r, "/login", http.StatusSeeOther)
	return nil
}

// cookieName returns a cookie name that differs between codebases, because browsers send cookies to every port
// of a machine.
func (s *Server) cookieName() string {
	name := "lockkeeper_" + s.opt.App.Space[:8]
	if s.opt.Certificate != "" {
		name = "__Host-" + name // browsers let no other host, and no plain HTTP, set a cookie of this name
	}
	return name
}

func (s *Server) cookie(value string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: s.cookieName(), Value: value, Path: "/", Expires: until, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.opt.Certificate != ""}
}

func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// attempts limits failed logins per address. Secrets cannot be guessed, so this only limits load and log noise.
type attempts struct {
	burst int           // attempts allowed at once
	every time.Duration // time until one more attempt is allowed

	mu   sync.Mutex
	left map[string]credit
}

type credit struct {
	n  float64
	at time.Time
}

// addressesKept limits the number of tracked addresses. When it is exceeded, all counts are reset.
const addressesKept = 10_000

func newAttempts(burst int, every time.Duration) *attempts {
	return &attempts{burst: burst, every: every, left: map[string]credit{}}
}

// take uses one attempt. If none is left, it returns how long to wait for the next.
func (a *attempts) take(from string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.left) > addressesKept {
		clear(a.left)
	}
	c, known := a.left[from]
	if !known {
		c = credit{float64(a.burst), now}
	}
	c.n = min(float64(a.burst), c.n+float64(now.Sub(c.at))/float64(a.every))
	c.at = now
	wait := time.Duration((1 - c.n) * float64(a.every))
	if wait <= 0 {
		c.n--
	}
	a.left[from] = c
	return max(0, wait)
}
