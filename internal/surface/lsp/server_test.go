package lsp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/project"
	"lockkeeper/internal/project/projecttest"
)

// An open file shows who holds it since when. The first edit warns, the holder is told of the
// request, and a message says when the file is free.
func TestHeldFile(t *testing.T) {
	blog := newBlog(t)
	agent := newOtter(t, blog.App)
	callsign := agent.claim("app/user.rb")
	e := start(t, blog.Env, "EDITOR-1")
	user := uriOf(in(blog, "app/user.rb"))
	e.open(user)
	e.hears(published, "app/user.rb is held by "+callsign+" (pts/3) since ", "rate-limit login")
	if got := e.titles(user); got != "Ask the holder to finish this file, Show why this file is held or free" {
		t.Errorf("offered: %s", got)
	}
	e.edit(user)
	e.hears(shown, callsign, "would disturb")
	e.edit(user)
	e.run("lockkeeper.ask", user) // the next message is about this, and not a second warning
	if m := e.next("message", func(m message) bool { return m.Method == shown }); !strings.Contains(string(m.Params), "told at its next call") {
		t.Errorf("after asking: %s", m.Params)
	}
	if news := strings.Join(agent.news(), "\n"); !strings.Contains(news, "ASKED app/user.rb, which you hold: ann waits for it") {
		t.Errorf("the holder heard %q", news)
	}
	if news := agent.news(); len(news) > 0 {
		t.Errorf("the holder heard again: %q", news)
	}
	e.run("lockkeeper.why", user)
	e.hears(shown, "app/user.rb is held by "+callsign, `\n`, "asked "+callsign, "acquired "+callsign)
	agent.release()
	if m := e.hears(published, user); !strings.Contains(string(m.Params), `"diagnostics":[]`) {
		t.Errorf("after the release: %s", m.Params)
	}
	e.hears(shown, "app/user.rb is free")
	agent.claim("app/user.rb") // while it is open with edits
	e.hears(published, "held by "+callsign)
	e.hears(shown, "would disturb")
	e.end()
}

// A claim of the editor is the person's: agents are refused, the person is not warned, another
// editor can ask, and closing the file or ending the editor releases it.
func TestClaim(t *testing.T) {
	blog := newBlog(t)
	e, other := start(t, blog.Env, "EDITOR-1"), start(t, blog.Env, "EDITOR-2")
	user, post := uriOf(in(blog, "app/user.rb")), uriOf(in(blog, "app/post.rb"))
	e.open(user)
	e.open(post)
	e.run("lockkeeper.claim", user)
	e.hears(shown, "app/user.rb is claimed by you")
	if got := e.titles(user); got != "Release this file, Show why this file is held or free" {
		t.Errorf("offered: %s", got)
	}
	other.open(user)
	other.hears(published, "app/user.rb is held by EDITOR-1 of ann since")
	other.run("lockkeeper.claim", user)
	other.hears(shown, "app/user.rb was not claimed: EDITOR-1 holds it")
	other.run("lockkeeper.ask", user)
	e.hears(shown, "ann waits for app/user.rb, which you hold")
	e.edit(user)
	e.run("lockkeeper.release", user) // a warning would come before
	if m := e.next("message", func(m message) bool { return m.Method == shown }); !strings.Contains(string(m.Params), "app/user.rb is released") {
		t.Errorf("after an edit under the claim: %s", m.Params)
	}
	other.hears(shown, "app/user.rb is free")

	e.run("lockkeeper.claim", user)
	other.hears(published, "held by EDITOR-1")
	e.close(user)
	other.hears(shown, "app/user.rb is free")
	e.run("lockkeeper.claim", post)
	e.hears(shown, "app/post.rb is claimed by you")
	other.open(post)
	other.hears(published, "app/post.rb is held by EDITOR-1")
	e.end()
	other.hears(shown, "app/post.rb is free")
	other.end()
}

// Names are shown on one line. Documents that are no files of a codebase are left alone, and a
// codebase that appears later is found.
func TestPlaces(t *testing.T) {
	blog, wiki := newBlog(t), projecttest.Empty(t, "").With(t, map[string]string{"app/user.rb": "page\n"})
	wiki.Env = blog.Env
	agent := newOtter(t, blog.App)
	odd := "app/a b#?%é\nc.rb"
	agent.claim(odd)
	link := filepath.Join(blog.Dir, "link")
	must(t, os.Symlink(blog.Root, link))
	e := start(t, blog.Env, "EDITOR-1")
	for _, uri := range []string{"untitled:1", "file://elsewhere/app/user.rb", "file:relative", "file:///a%00b", "%", "", "zipfile:///a.zip::b", uriOf("/"), uriOf(blog.Root), uriOf(in(blog, strings.Repeat("x/", 5_000)))} {
		e.open(uri)
		e.edit(uri)
		e.save(uri)
	}
	e.open(uriOf(in(blog, odd)))
	e.hears(published, `app/a b#?%é c.rb is held by`)
	e.open(uriOf(filepath.Join(link, odd)))
	e.hears(published, "link", `app/a b#?%é c.rb is held by`)

	page := uriOf(filepath.Join(wiki.Root, "app/user.rb"))
	e.open(page)
	if got := e.titles(page); got != "" {
		t.Errorf("offered without a codebase: %s", got)
	}
	_, err := project.Init(t.Context(), project.Settings{Dir: wiki.Root, Env: projecttest.Lookup(wiki.Env)}, project.InitOptions{})
	must(t, err)
	e.save(page)
	if got := e.titles(page); !strings.HasPrefix(got, "Claim this file") {
		t.Errorf("offered in the new codebase: %s", got)
	}
	e.run("lockkeeper.claim", page)
	e.hears(shown, "app/user.rb is claimed by you")
	if got := read(t, in(blog, odd)); got != "odd\n" {
		t.Errorf("the file is now %q", got)
	}
	e.end()
}

// The server answers invalid messages with errors and continues. It ends with its editor.
func TestProtocol(t *testing.T) {
	e := newEditor(t, newBlog(t).Env, "EDITOR-1")
	code := func(m message) int {
		if m.Error == nil {
			return 0
		}
		return m.Error.Code
	}
	if got := code(e.call("textDocument/codeAction", nil)); got != -32002 {
		t.Errorf("before initialize: %d", got)
	}
	e.notify("textDocument/didOpen", document("file:///a"))
	e.send("{")
	if got := code(e.next("answer", func(m message) bool { return m.Error != nil })); got != -32700 {
		t.Errorf("invalid JSON: %d", got)
	}
	e.call("initialize", nil)
	for method, want := range map[string]int{"initialize": -32600, "textDocument/hover": -32601, "workspace/executeCommand": -32602} {
		if got := code(e.call(method, []int{1})); got != want {
			t.Errorf("%s: %d, not %d", method, got, want)
		}
	}
	e.notify("textDocument/didOpen", []int{1})
	e.notify("$/cancelRequest", nil)
	must(t, e.to.Close())
	must(t, <-e.ended)

	e = newEditor(t, newBlog(t).Env, "EDITOR-1")
	_, err := e.to.Write([]byte("Content-Length: 99999999999\r\n\r\n"))
	must(t, err)
	if err := <-e.ended; err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a message that is too long: %v", err)
	}
}
