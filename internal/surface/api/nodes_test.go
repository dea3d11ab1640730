package api

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/access"
)

// Nodes and operations are locked as by lockkeeper op, and a directory of theirs is replaced.
//
// shows: DL-46 DL-70
func TestNodesAndOperations(t *testing.T) {
	preset, err := resource.PresetOf("fole")
	must(t, err)
	s := newSceneOf(t, projecttest.Empty(t, "gate:\n  allowed_write_paths: [data]\n"+preset.Tables))
	post := func(path string, body map[string]any) answer {
		return s.as(access.Agent, "POST", "/api/v1/"+path, body)
	}
	acquire := func(body map[string]any) (g given) {
		t.Helper()
		post("grants", body).want(ok).into(&g)
		return g
	}
	release := func(g given) {
		t.Helper()
		post("grants/"+g.ID+"/release", map[string]any{"token": g.Token}).want(ok)
	}
	at := func(path string) string { return filepath.Join(s.App.Root.Dir(), path) }
	must(t, os.MkdirAll(at("data/p1/maps/m2"), 0o755), os.MkdirAll(at("out/0"), 0o755), os.WriteFile(at("out/0/tile"), []byte("1"), 0o644))

	// An operation by its name.
	tiles := map[string]any{"operation": "generate-tiles", "of": []string{"project/p1/map/m2"}}
	g := acquire(tiles)
	if g.Policy != "dal" || len(g.WritePaths) != 2 || len(g.ReadPaths) != 2 {
		t.Errorf("granted %+v", g)
	}
	post("grants", tiles).want(http.StatusLocked, "blocked")
	post("grants", map[string]any{"read_nodes": []string{"project/p1/map/m2"}}).want(http.StatusLocked, "blocked")
	replacement := map[string]any{"grant": g.ID, "token": g.Token, "dir": "data/p1/maps/m2/tiles", "from": "out"}
	post("replace-dir", replacement).want(ok).has(`"state":"committed"`)
	if text, err := os.ReadFile(at("data/p1/maps/m2/tiles/0/tile")); err != nil || string(text) != "1" {
		t.Errorf("%q, %v", text, err)
	}
	post("replace-dir", replacement).want(ok).has(`"landing":null`)
	for field, value := range map[string]string{"dir": "data/p1/maps/m3/tiles", "token": "wrong"} {
		wrong := map[string]any{"grant": g.ID, "token": g.Token, "dir": "data/p1/maps/m2/tiles", "from": "out"}
		wrong[field] = value
		post("replace-dir", wrong).want(http.StatusConflict, "violation")
	}
	for _, from := range []string{"", ".", ".git", ".lockkeeper", "..", "/etc", "lockkeeper.yaml", "none"} {
		wrong := map[string]any{"grant": g.ID, "token": g.Token, "dir": "data/p1/maps/m2/tiles", "from": from}
		post("replace-dir", wrong).want(http.StatusBadRequest, "input")
	}
	must(t, os.Symlink("/etc/passwd", at("out/0/link")))
	post("replace-dir", replacement).want(http.StatusBadRequest, "input").has("neither a file nor a directory")
	release(g)
	post("replace-dir", replacement).want(http.StatusConflict, "violation")

	// Nodes, upgraded and added in their order.
	n := acquire(map[string]any{"read_nodes": []string{"project/p1"}, "upgradeable_nodes": []string{"project/p1/map/m2"}})
	post("grants/"+n.ID+"/upgrade", map[string]any{"token": n.Token, "nodes": []string{"project/p1/map/m2"}}).want(ok).has(`"data/p1/maps/m2"`)
	post("grants/"+n.ID+"/extend", map[string]any{"token": n.Token, "write_nodes": []string{"project/p1/map/m3"}}).want(ok)
	post("grants/"+n.ID+"/extend", map[string]any{"token": n.Token, "write_nodes": []string{"project/p1/map/m1"}}).want(http.StatusConflict).has("global order")
	s.as(access.Agent, "GET", "/api/v1/check?write_nodes=project/p1/", nil).want(ok).has(`"free":false`)
	release(n)

	// What is ambiguous, unknown or needs an approval is refused.
	for _, body := range []map[string]any{
		{"operation": "generate-tiles"}, {"operation": "paint"}, {"write_nodes": []string{"project/p1/map"}},
		{"operation": "generate-tiles", "of": []string{"project/p1/map/m2"}, "write": []string{"a"}},
	} {
		post("grants", body).want(http.StatusBadRequest)
	}
	post("grants", map[string]any{"operation": "delete-project", "of": []string{"project/p1"}}).want(http.StatusConflict).has("approval")
	s.as(access.Agent, "GET", "/api/v1/grants", nil).want(ok).has(`"grants":[]`)
}
