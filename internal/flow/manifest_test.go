package flow

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const screens = `{
  "screens": [
    {"name": "Post Detail", "module": "blog", "controller": "posts", "primary_action": "show", "secondary_actions": ["update"],
     "reads_from": ["app/models/user.rb", "app/views/shared/"]},
    {"name": "Posts", "module": "blog", "controller": "posts", "primary_action": "index", "secondary_actions": [],
     "reads_from": ["app/models/blog/tag.rb"]},
    {"name": "Comments", "module": "blog", "controller": "comments", "primary_action": "index", "secondary_actions": [],
     "reads_from": ["./app/models/blog/tag.rb", "app/views/shared/_nav.html.erb"]},
    {"name": "Carts", "module": "shop", "controller": "shop/carts", "primary_action": "index", "secondary_actions": [],
     "reads_from": ["app/models/user.rb", "app/models/shop/cart.rb"]},
    {"name": "Home", "module": "", "controller": "home", "primary_action": "show", "secondary_actions": [], "reads_from": []}
  ]
}
`

func readScreens(t *testing.T) *Manifest {
	t.Helper()
	m, err := ReadManifest("screens.json", []byte(screens))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// shows: SW-24 SW-25 CF-45
func TestManifest(t *testing.T) {
	m := readScreens(t)
	var units []string
	for _, g := range m.Controllers() {
		units = append(units, g.Unit)
		for _, s := range g.Screens {
			units = append(units, s.Name)
		}
	}
	if want := "blog/posts Post Detail Posts blog/comments Comments shop/carts Carts home Home"; strings.Join(units, " ") != want {
		t.Errorf("got %v", units)
	}
	var shared []string
	for _, s := range m.Shared() {
		shared = append(shared, s.Path+" "+s.Scope+": "+strings.Join(s.Screens, ", "))
	}
	want := []string{
		"app/models/blog/tag.rb module: blog/posts/Posts, blog/comments/Comments",
		"app/models/user.rb app: blog/posts/Post Detail, shop/carts/Carts",
		"app/views/shared/_nav.html.erb module: blog/posts/Post Detail, blog/comments/Comments",
	}
	if !slices.Equal(shared, want) {
		t.Errorf("got\n%s", strings.Join(shared, "\n"))
	}
}

// An unreadable path is refused with its position in the manifest.
//
// shows: SW-24
func TestManifestPlaces(t *testing.T) {
	err := readScreens(t).CheckReads(func(path string) error {
		if path == "app/models/user.rb" {
			return errors.New("not this one")
		}
		return nil
	})
	want := `screens.json:4:21: screens/0/reads_from/0: not this one
screens.json:10:21: screens/3/reads_from/0: not this one`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// shows: SW-26 SW-20
func TestReadsOf(t *testing.T) {
	m := readScreens(t)
	got := Rails().ReadsOf(m.Screens[0])
	want := []string{"app/controllers/blog/posts_controller.rb", "app/models/blog/post.rb", "app/models/user.rb", "app/views/blog/posts/", "app/views/shared/"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	home := Layout{Controller: "src/{controller}.ts", Views: "pages/{name}/", Models: []string{"models/{module}/{model}.ts"}}.ReadsOf(m.Screens[4])
	if want := []string{"models/home.ts", "pages/home/", "src/home.ts"}; !slices.Equal(home, want) {
		t.Errorf("got %q", home)
	}
	for plural, want := range map[string]string{"posts": "post", "categories": "category", "boxes": "box", "classes": "class", "statuses": "status", "status": "status", "news": "new", "access": "access", "s": "s"} {
		if got := singular(plural); got != want {
			t.Errorf("%s: %s", plural, got)
		}
	}
}

// shows: SW-24
func TestManifestRefusals(t *testing.T) {
	entry := func(name, module, controller, reads string) string {
		return `{"name":"` + name + `","module":"` + module + `","controller":"` + controller + `","primary_action":"show","secondary_actions":[],"reads_from":[` + reads + `]}`
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":        {``, "s.json:1:1: not JSON: unexpected end"},
		"empty":          {"{\n \"screens\": []}", "s.json:2:13: screens: minItems"},
		"bare list":      {`[]`, "s.json:1:1: got array, want object"},
		"unknown member": {"{\"screens\": [\n {\"name\": \"a\", \"colour\": 1}]}", "s.json:2:"},
		"missing member": {"{\"screens\": [\n {\"name\": \"a\", \"module\": \"m\", \"controller\": \"c\", \"primary_action\": \"x\", \"secondary_actions\": []}]}", "s.json:2:2: screens/0: missing reads_from"},
		"wrong type":     {"{\"screens\": [" + entry("a", "m", "c", "3") + "]}", "screens/0/reads_from/0: got number, want string"},
		"twice":          {"{\"screens\": [" + entry("a", "m", "c", "") + ",\n" + entry("a", "m", "m/c", "") + "]}", `s.json:2:1: screens/1: screen "a" of controller m/c is already screens/0`},
		"outside":        {"{\"screens\": [" + entry("a", "m", "c", `"app/a","../b"`) + "]}", `screens/0/reads_from/1: path "../b": a path with ..`},
		"absolute":       {"{\"screens\": [" + entry("a", "m", "c", `"/etc"`) + "]}", "not relative to the root"},
		"module":         {"{\"screens\": [" + entry("a", "../m", "c", "") + "]}", "screens/0/module"},
		"controller":     {"{\"screens\": [" + entry("a", "m", "c/", "") + "]}", "screens/0/controller"},
		"line break":     {"{\"screens\": [" + entry(`a\nb`, "m", "c", "") + "]}", "screens/0/name"},
	} {
		if _, err := ReadManifest("s.json", []byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	_, err := ReadManifest("s.json", []byte("{\"screens\": ["+entry("a", "m", "c", `"../b"`)+",\n"+entry("b", "m", "c", `"/c"`)+"]}"))
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("not both at once: %v", err)
	}
}

func TestCutManifest(t *testing.T) {
	whole := strings.TrimSpace(screens)
	for n := range whole {
		_, err := ReadManifest("s.json", []byte(whole[:n]))
		var at *DocumentError
		if !errors.As(err, &at) || at.Line == 0 {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
	}
}
