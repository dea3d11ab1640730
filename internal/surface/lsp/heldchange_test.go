package lsp_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/session"
)

// A person is told in the editor that another program may have changed a file that the person holds,
// and where the version before is.
func TestHeldChange(t *testing.T) {
	blog := newBlog(t)
	agent := newOtter(t, blog.App)
	e := start(t, blog.Env, "EDITOR-1")
	user := uriOf(in(blog, "app/user.rb"))
	e.open(user)
	e.run("lockkeeper.claim", user)
	e.hears(shown, "app/user.rb is claimed by you")
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for n, heard := 0, false; !heard; n++ { // until a comparison has seen the file before the change
		agent.call(func(_ context.Context, s *session.Session) {
			must(t, s.Begin("1", session.Call{Command: "./daemon.sh"}))
			must(t, os.WriteFile(in(blog, "app/user.rb"), fmt.Appendf(nil, "class User # %d\nend\n", n), 0o644))
			s.End("1", true)
		})
		select {
		case m, ok := <-e.from:
			if !ok {
				t.Fatal("the server ended")
			}
			text := string(m.Params)
			heard = m.Method == shown && strings.Contains(text, "was changed without a lock maybe by a command of session") && strings.Contains(text, "lockkeeper rescue show")
		case <-again.C:
		}
	}
	e.end()
}
