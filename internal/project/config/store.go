package config

import (
	"errors"
	"net/url"
	"strings"
)

// IsPostgres reports whether a store is a PostgreSQL address. Otherwise it is the path of an
// SQLite file.
func IsPostgres(store string) bool {
	scheme, _, ok := strings.Cut(store, "://")
	return ok && (scheme == "postgres" || scheme == "postgresql")
}

func checkStore(store string) error {
	switch {
	case store == "":
		return errors.New("empty")
	case strings.ContainsAny(store, "\x00\r\n"):
		return errors.New("contains a line break or NUL")
	case IsPostgres(store):
		u, err := url.Parse(store)
		if err != nil {
			return errors.New("not a URL; special characters in a password are written like %40")
		}
		if u.Hostname() == "" && u.Query().Get("host") == "" {
			return errors.New("names no host")
		}
		return nil
	case strings.Contains(store, "://"):
		return errors.New("unknown kind of store, use the path of an SQLite file or postgres://user@host/database")
	case strings.Contains(store, "password=") || strings.Contains(store, "host="):
		return errors.New("looks like connection keywords, write it as postgres://user@host/database")
	}
	return nil
}

// Redact hides the password of a store address. If it cannot tell where the password is, it hides
// everything.
func Redact(store string) string {
	shown, _ := redact(store)
	return shown
}

// HasPassword reports whether Redact hides something.
func HasPassword(store string) bool {
	_, hidden := redact(store)
	return hidden
}

func redact(store string) (shown string, hidden bool) {
	scheme, _, ok := strings.Cut(store, "://")
	if !ok {
		if strings.Contains(store, "password=") {
			return "***", true
		}
		return store, false
	}
	u, err := url.Parse(store)
	ambiguous := strings.Count(store, "@") > 1 || u != nil && u.User == nil && strings.Contains(store, "@")
	if err != nil || ambiguous {
		return scheme + "://***", true
	}
	if _, has := u.User.Password(); has {
		hidden = true
		u.User = url.UserPassword(u.User.Username(), "***")
	}
	if q := u.Query(); len(q) > 0 {
		for key := range q {
			if strings.Contains(strings.ToLower(key), "pass") {
				hidden = true
				q.Set(key, "***")
			}
		}
		u.RawQuery = q.Encode()
	}
	return strings.ReplaceAll(u.String(), "%2A%2A%2A", "***"), hidden
}

// redactWebhook hides the path and query of a webhook URL, which may be secret.
func redactWebhook(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "***"
	}
	return u.Scheme + "://" + u.Host + "/***"
}
