package flow

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const rails = "app/controllers/**/*_controller.rb"

func write(t *testing.T, root string, files ...string) {
	t.Helper()
	for _, file := range files {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func names(found []FoundUnit) string {
	var list []string
	for _, f := range found {
		list = append(list, f.Name)
	}
	return strings.Join(list, " ")
}

// shows: PL-10 PL-74 PL-12
func TestDiscover(t *testing.T) {
	root := t.TempDir()
	write(t, root, "app/controllers/blog/posts_controller.rb", "app/controllers/home_controller.rb", "app/controllers/application_controller.rb",
		"app/controllers/admin/application_controller.rb", "app/controllers/admin/blog/users_controller.rb", "app/controllers/concerns/authentication.rb",
		"app/views/blog/posts/show.html.erb", "app/models/blog/post.rb", "config/routes.rb", "test/controllers/blog/posts_controller_test.rb")
	o := DiscoverOptions{Glob: rails, Excludes: []string{"application_controller"}, TestPath: "test/controllers/{controller}_controller_test.rb", Layout: Rails()}
	found, err := Discover(os.DirFS(root), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(found); got != "admin/blog/users blog/posts home" {
		t.Errorf("got %s", got)
	}
	posts, err := json.Marshal(found[1])
	want := `{"name":"blog/posts","module":"blog","file":"app/controllers/blog/posts_controller.rb","views":"app/views/blog/posts/","test":"test/controllers/blog/posts_controller_test.rb",` +
		`"files":["app/controllers/blog/posts_controller.rb","app/views/blog/posts/","app/models/blog/post.rb","config/routes.rb","test/controllers/blog/posts_controller_test.rb"]}`
	if err != nil || string(posts) != want {
		t.Errorf("got  %s\nwant %s", posts, want)
	}
	if home := found[2]; home.Module != "" || home.Test != "test/controllers/home_controller_test.rb" || len(home.Files) != 2 {
		t.Errorf("%+v", home)
	}
}

// A controller in a module reads the models of its own module, of the modules around it and of no
// module, with their tests. Modules in concerns are not controllers.
//
// shows: PL-10 PL-12
func TestDiscoverModules(t *testing.T) {
	root := t.TempDir()
	write(t, root, "app/controllers/admin/users_controller.rb", "app/controllers/api/v1/blog/posts_controller.rb", "app/controllers/users_controller.rb",
		"app/controllers/concerns/tracked_controller.rb", "app/controllers/admin/concerns/api/audited_controller.rb", "app/controllers/concerns_controller.rb",
		"app/models/user.rb", "app/models/admin/user.rb", "app/models/blog/post.rb", "app/models/api/post.rb", "app/models/post.rb", "app/models/v1/user.rb",
		"spec/models/user_spec.rb", "spec/models/admin/user_spec.rb", "spec/requests/admin/users_spec.rb", "spec/requests/users_spec.rb",
		"spec/controllers/admin/users_controller_spec.rb", "spec/models/blog/post_spec.rb", "test/models/user_test.rb", "test/controllers/users_controller_test.rb")
	found, err := Discover(os.DirFS(root), DiscoverOptions{Glob: rails, Layout: Rails()})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"admin/users": "spec/controllers/admin/users_controller_spec.rb spec/requests/admin/users_spec.rb app/models/admin/user.rb spec/models/admin/user_spec.rb " +
			"app/models/user.rb spec/models/user_spec.rb test/models/user_test.rb",
		"api/v1/blog/posts": "app/models/blog/post.rb spec/models/blog/post_spec.rb app/models/api/post.rb app/models/post.rb",
		"concerns":          "",
		"users":             "app/models/user.rb spec/requests/users_spec.rb test/controllers/users_controller_test.rb spec/models/user_spec.rb test/models/user_test.rb",
	}
	for _, f := range found {
		reads, known := want[f.Name]
		if !known {
			t.Errorf("%s is not a controller", f.Name)
		}
		if got := strings.Join(f.Files[1:], " "); !sameWords(got, reads) {
			t.Errorf("%s reads\n%s\nwant\n%s", f.Name, got, reads)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}

func sameWords(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// Names come from the glob. Excludes match a name in every documented spelling.
//
// shows: PL-10 PL-74
func TestDiscoverNames(t *testing.T) {
	fsys := fstest.MapFS{}
	for _, file := range []string{"src/a/one.ts", "src/two.ts", "src/two.js", "lib/x_job.rb", "top.rb"} {
		fsys[file] = &fstest.MapFile{}
	}
	for _, tc := range []struct {
		glob     string
		excludes []string
		want     string
	}{
		{"src/**/*.ts", nil, "a/one two"},
		{"src/*.ts", nil, "two"},
		{"src/**/*.{ts,rb}", nil, "a/one two"},
		{"src/two.ts", nil, "two"},
		{"**/*_job.rb", nil, "lib/x"},
		{"*.rb", nil, "top"},
		{"./src/*.ts", nil, "two"},
		{"src/**/*.ts", []string{"one"}, "two"},
		{"src/**/*.ts", []string{"a/*"}, "two"},
		{"src/**/*.ts", []string{"src/two.ts"}, "a/one"},
		{"lib/*_job.rb", []string{"x_job"}, ""},
		{"lib/*_job.rb", []string{"x"}, ""},
		{"nothing/*", nil, ""},
	} {
		found, err := Discover(fsys, DiscoverOptions{Glob: tc.glob, Excludes: tc.excludes})
		if err != nil || names(found) != tc.want {
			t.Errorf("%s without %v: got %q, %v; want %q", tc.glob, tc.excludes, names(found), err, tc.want)
		}
	}
	for glob, want := range map[string]string{"": "not a pattern", "/etc/*": "not a pattern", "../*": "not a pattern", "app/[": "not a pattern", "app/": "not a pattern"} {
		if _, err := Discover(fsys, DiscoverOptions{Glob: glob}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", glob, err)
		}
	}
	if _, err := Discover(fsys, DiscoverOptions{Glob: "*", TestPath: "../{name}"}); err == nil {
		t.Error("a test outside of the root")
	}
	found, err := Discover(fsys, DiscoverOptions{Glob: "src/*"})
	if names(found) != "two.js two.ts" || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	found, err = Discover(fsys, DiscoverOptions{Glob: "src/*.{js,ts}"})
	if names(found) != "two" || err == nil || !strings.Contains(err.Error(), "src/two.ts\": it has the same name, two, as src/two.js") {
		t.Errorf("%v, %v", found, err)
	}
}

// Discovery names a file that cannot be a unit, and still lists the others.
//
// shows: PL-10
func TestDiscoverHostile(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write(t, outside, "secret.rb")
	write(t, root, "app/controllers/good_controller.rb", "app/controllers/line\nbreak_controller.rb", "app/controllers/bad\xff_controller.rb", "engines/real.rb", "app/controllers/dir_controller.rb/x")
	for name, to := range map[string]string{
		"absolute": filepath.Join(outside, "secret.rb"), "relative": "../../../" + filepath.Base(outside) + "/secret.rb", "dangling": "nowhere.rb", "self": "self_controller.rb",
		"inside": "../../engines/real.rb", "again": "inside_controller.rb",
	} {
		if err := os.Symlink(to, filepath.Join(root, "app/controllers", name+"_controller.rb")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(root, "app/controllers/linked")); err != nil {
		t.Fatal(err)
	}
	write(t, outside, "hidden_controller.rb")
	if err := os.Symlink("loop", filepath.Join(root, "app/controllers/loop")); err != nil {
		t.Fatal(err)
	}
	found, err := Discover(os.DirFS(root), DiscoverOptions{Glob: rails, Layout: Rails()})
	if got := names(found); got != "again good inside" {
		t.Errorf("got %q", got)
	}
	for _, want := range []string{"absolute_controller.rb\": a link out of the root, to " + outside, "relative_controller.rb\": a link out of the root", "dangling_controller.rb\": a link to app/controllers/nowhere.rb, which does not exist",
		"self_controller.rb\": a link that leads to itself", `line\nbreak_controller.rb": its name has a control character`, `bad\xff_controller.rb": its name has`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing says %s:\n%v", want, err)
		}
	}
	again, err2 := Discover(os.DirFS(root), DiscoverOptions{Glob: rails, Layout: Rails()})
	if err2 == nil || err2.Error() != err.Error() || !slices.EqualFunc(found, again, func(a, b FoundUnit) bool { return a.Name == b.Name }) {
		t.Error("a second look sees something else")
	}
}
