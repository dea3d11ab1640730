package sample

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fresh writes the application into a new directory.
func fresh(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "blog")
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sh runs a command of the application and reports whether it succeeded.
func sh(t testing.TB, dir, command string) (ok bool, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return err == nil, string(out)
}

func content(t testing.TB, dir, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func put(t testing.TB, dir, path, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree returns all files of a directory, with their modes and hashes.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files[rel] = fmt.Sprintf("%s %x", info.Mode(), sha256.Sum256([]byte(content(t, dir, rel))))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Write always writes the same files and never overwrites existing ones.
func TestWrite(t *testing.T) {
	dir := fresh(t)
	first, second := tree(t, dir), tree(t, fresh(t))
	if len(first) < 40 || fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("%v\n%v", first, second)
	}
	if !strings.HasPrefix(first["bin/check"], "-rwxr-xr-x ") || !strings.HasPrefix(first["bin/check.awk"], "-rw-r--r-- ") {
		t.Error(first["bin/check"], first["bin/check.awk"])
	}
	if err := Write(dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Error(err)
	}
	if after := tree(t, dir); fmt.Sprint(after) != fmt.Sprint(first) {
		t.Error("it was written over")
	}
}

// shells returns command prefixes for every sh and awk on this machine.
func shells(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"sh": ""}
	for _, awk := range []string{"mawk", "gawk", "original-awk", "busybox awk"} {
		program, _, _ := strings.Cut(awk, " ")
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "awk"), []byte("#!/bin/sh\nexec "+awk+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		all[awk] = "PATH=" + dir + ":$PATH "
		if program == "busybox" {
			all["busybox sh"] = all[awk] + "busybox "
		}
	}
	return all
}

// The application passes its checks as written, with every shell.
func TestFresh(t *testing.T) {
	dir := fresh(t)
	for name, shell := range shells(t) {
		for _, command := range []string{Test, CI} {
			if ok, said := sh(t, dir, shell+command); !ok || !strings.HasPrefix(said, "ok: ") {
				t.Errorf("%s, %s: %s", name, command, said)
			}
		}
	}
}

// Each mistake fails the checks that it concerns, and no others.
func TestMistakes(t *testing.T) {
	const (
		posts, comments          = "test/controllers/blog/posts_controller_test.rb", "test/controllers/blog/comments_controller_test.rb"
		sessions, registrations  = "test/controllers/accounts/sessions_controller_test.rb", "test/controllers/accounts/registrations_controller_test.rb"
		authentication           = "app/controllers/concerns/authentication.rb"
		postsController, postRow = "app/controllers/blog/posts_controller.rb", "app/models/blog/post.rb"
	)
	all := []string{posts, comments, sessions, registrations}
	type broken struct {
		path, find, replace string
		tests               []string // the tests that fail
		ci                  bool     // CI fails
		says                string
	}
	for name, m := range map[string]broken{
		"a method renamed in a concern":     {authentication, "def require_login", "def require_user", all, false, "require_login is defined neither in"},
		"a helper renamed in a concern":     {authentication, "def sign_in(user)", "def log_in(user)", []string{sessions, registrations}, false, "sign_in is defined neither in"},
		"a method with a question renamed":  {authentication, "def signed_in?", "def known?", all, false, "authentication.rb:7: signed_in? is defined neither"},
		"a callback that is nowhere":        {postsController, "before_action :find_post", "before_action :find_it", []string{posts}, false, "posts_controller.rb:5: find_it is defined neither"},
		"a call of nothing":                 {postsController, "require_owner(@post)", "require_author(@post)", []string{posts}, false, "require_author is defined neither"},
		"a handler that is nowhere":         {"app/controllers/concerns/error_handling.rb", "def render_not_found", "def render_missing", all, false, "render_not_found is defined neither"},
		"a concern that is no more":         {postsController, "include Pagination", "include Paging", []string{posts}, false, "concerns/paging.rb, which is not there"},
		"no end":                            {postsController, "  def edit\n  end\n", "  def edit\n", []string{posts}, false, "1 of its blocks has no end"},
		"an end too many":                   {authentication, "  private\n", "  end\n  end\n  private\n", all, false, "an end without a beginning"},
		"a block without an end in a model": {postRow, "    body.truncate(200)\n  end\n", "    body.truncate(200)\n", []string{posts}, false, "post.rb:11: 1 of its blocks"},
		"what a test expects renamed":       {postRow, "scope :newest_first", "scope :latest", []string{posts}, false, "it expects newest_first in app/models/blog/post.rb, which does not define it"},
		"what a test expects nowhere":       {comments, "services/blog/comment_notifier.rb", "services/notifier.rb", []string{comments}, false, "services/notifier.rb, which is not there"},
		"a view that is not there":          {posts, `"blog/posts/show"`, `"blog/posts/detail"`, []string{posts}, false, "posts_controller_test.rb:14: there is no view blog/posts/detail"},
		"a view that a concern renders":     {"app/controllers/concerns/error_handling.rb", "shared/not_found", "shared/missing", all, false, "there is no view shared/missing"},
		"a tab":                             {postRow, "  belongs_to", "\tbelongs_to", nil, true, "post.rb:2: a tab"},
		"space at an end":                   {"app/views/shared/not_found.html.erb", "</h1>\n", "</h1> \n", nil, true, "not_found.html.erb:1: space"},
		"no line end":                       {"config/routes.rb", "  end\nend\n", "  end\nend", nil, true, "no line end"},
		"something printed":                 {postsController, "    @post = Blog::Post.new\n", "    puts params\n    @post = Blog::Post.new\n", nil, true, "puts"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fresh(t)
			text := content(t, dir, m.path)
			if strings.Count(text, m.find) != 1 {
				t.Fatalf("%s has %q %d times", m.path, m.find, strings.Count(text, m.find))
			}
			put(t, dir, m.path, strings.Replace(text, m.find, m.replace, 1))
			var said strings.Builder
			for _, test := range all {
				want := true
				for _, fails := range m.tests {
					want = want && fails != test
				}
				ok, says := sh(t, dir, Test+" "+test)
				said.WriteString(says)
				if ok != want {
					t.Errorf("%s: %v, %s", test, ok, says)
				}
			}
			ok, says := sh(t, dir, CI)
			said.WriteString(says)
			if ok == m.ci || !strings.Contains(said.String(), m.says) {
				t.Errorf("style: %v; all that was said:\n%s", ok, said.String())
			}
		})
	}
	if ok, said := sh(t, fresh(t), Test+" test/controllers/nowhere_test.rb"); ok || !strings.Contains(said, "no such file") {
		t.Error(said)
	}
}
