package session

import (
	"context"
	"io/fs"
	"os"
	"testing"

	"lockkeeper/internal/project/config"
)

// After a session was killed, the next holder, a comparison of the held files or lockkeeper status
// restores the permissions of its files, also if the setting is off by then. While it lives, nothing does.
//
// shows: GP-5
func TestReadOnlySurvivesCrashes(t *testing.T) {
	for name, restore := range map[string]func(*testing.T, *Registry) error{
		"recovery": func(t *testing.T, b *Registry) error { return Recover(t.Context(), b.app) },
		"watch":    func(t *testing.T, b *Registry) error { return (&watch{registry: b}).look(t.Context()) },
		"switched off": func(t *testing.T, b *Registry) error {
			b.app.Config.Sessions.ReadOnly = "off"
			return b.RestoreModes(t.Context())
		},
		"next holder": nil,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			b.app.Config.Sessions.ReadOnly = config.On
			mode := func(want fs.FileMode) {
				t.Helper()
				if info, err := os.Stat(b.at("one")); err != nil || info.Mode().Perm() != want {
					t.Fatalf("%v instead of %v, %v", info.Mode(), want, err)
				}
			}
			claim := func(ctx context.Context, s *Session) {
				t.Helper()
				if claims(t, s, "one") != 0 {
					t.Fatal("it is refused")
				}
				if err := s.Writable(ctx, false, "one"); err != nil {
					t.Fatal(err)
				}
				mode(0o754)
				if err := s.Protect(ctx); err != nil {
					t.Fatal(err)
				}
				mode(0o554)
			}
			if err := os.WriteFile(b.at("one"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(b.at("one"), 0o754); err != nil {
				t.Fatal(err)
			}
			first, end := newWindow(t)
			b.in(t, Caller{ID: "a", Agent: "x", Process: first}, claim)
			if restore != nil {
				if err := restore(t, b); err != nil {
					t.Fatal(err)
				}
				mode(0o554)
			}
			end()
			second, _ := newWindow(t)
			if restore == nil {
				b.in(t, Caller{ID: "b", Agent: "x", Process: second}, func(ctx context.Context, s *Session) {
					claim(ctx, s)
					if err := s.Release(ctx); err != nil {
						t.Fatal(err)
					}
				})
			} else if err := restore(t, b); err != nil {
				t.Fatal(err)
			}
			mode(0o754)
			if b.mayProtect() {
				t.Error("the list is still there")
			}
		})
	}
}
