package mcp_test

import (
	"os"
	"path/filepath"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/access"
	"lockkeeper/store"
)

// An agent replaces a directory under the locks of an operation, which are held for that call
// alone. While another holder has one of them, nothing is replaced.
//
// shows: DL-46 DL-67
func TestReplaceDir(t *testing.T) {
	preset, err := resource.PresetOf("fole")
	must(t, err)
	for name, connect := range map[string]func(*scene) *client{
		"stdio": func(s *scene) *client { return s.stdio("one") },
		"http":  func(s *scene) *client { return s.http("one", s.serve(), s.token("one", access.Agent)) },
	} {
		t.Run(name, func(t *testing.T) {
			place := projecttest.Empty(t, "gate:\n  allowed_write_paths: [data]\n"+preset.Tables).With(t, map[string]string{"out/0/tile": "1", "data/p1/maps/m2/notes": ""})
			s := &scene{place.Codebase(t), t}
			c := connect(s)
			tiles := args{"dir": "data/p1/maps/m2/tiles", "from": "out", "operation": "generate-tiles", "of": []string{"project/p1/map/m2"}}
			with := func(key string, value any) args {
				changed := args{key: value}
				for k, v := range tiles {
					if k != key {
						changed[k] = v
					}
				}
				return changed
			}
			c.call("check", args{"nodes": []string{"project/p1/map/m2", "project/p1/"}}).fine("project/p1/map/m2: free")
			c.call("replace_dir", tiles).fine("REPLACED data/p1/maps/m2/tiles/: landing")
			if s.read("data/p1/maps/m2/tiles/0/tile") != "1" {
				t.Error("it has other content")
			}
			c.call("replace_dir", tiles).fine("had this content already")
			kinds := ""
			must(t, s.App.Store.View(t.Context(), func(r store.Reader) error {
				events, err := r.Events(store.EventQuery{Limit: 100})
				for _, ev := range events {
					kinds += string(ev.Kind) + " "
				}
				return err
			}))
			if want := "acquired landed replaced released acquired released "; kinds != want {
				t.Errorf("recorded %s, want %s", kinds, want)
			}
			must(t, os.WriteFile(filepath.Join(s.Root, "out/0/tile"), []byte("2"), 0o644))
			for _, wrong := range []args{with("operation", "paint"), with("of", []string{}), with("of", []string{"project/p1"}), with("dir", "data/p1/maps/m3/tiles"), with("from", "/etc"), with("from", ".lockkeeper")} {
				c.call("replace_dir", wrong).not()
			}
			c.call("replace_dir", args{"dir": "data/p1/project/x", "from": "out", "operation": "delete-project", "of": []string{"project/p1"}}).not("approval")
			g, err := s.App.Hold(t.Context(), lockkeeper.Request{Holder: "ada", Policy: "dal", Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "project/p1/map/m2", Kind: lockkeeper.Node}, Mode: lockkeeper.Read}}}, 0)
			must(t, err)
			c.call("replace_dir", tiles).not("ada")
			if a := c.call("check", args{"nodes": []string{"project/p1/map/m2", "project/p1/map/m3"}}).fine("project/p1/map/m2: held by ada", "project/p1/map/m3: free"); a.value.Free {
				t.Error("it is free")
			}
			must(t, g.Release(t.Context()))
			if s.read("data/p1/maps/m2/tiles/0/tile") != "1" {
				t.Error("it was replaced")
			}
			c.call("replace_dir", tiles).fine("REPLACED")
			must(t, os.Symlink("/etc/passwd", filepath.Join(s.Root, "out/0/link")))
			c.call("replace_dir", tiles).not("neither a file nor a directory", "keep only files and directories")
		})
	}
}
