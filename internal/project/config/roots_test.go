package config

import (
	"strings"
	"testing"
)

// In a multi-node deployment, queued work must name its root, and a node must name the roots that
// it reaches. The error says which is missing.
//
// shows: DL-81
func TestRootsMustBeClearOnSeveralNodes(t *testing.T) {
	const several = "store: postgres://u@h/db\ndeployment: multi-node\n"
	for _, c := range []struct{ file, named, root, rootErr, reachErr string }{
		{file: ""},
		{file: "", named: "main", root: "main"},
		{file: "roots: [main, site]"},
		{file: several, rootErr: "no root was given, and this node lists no roots that it reaches; deployment multi-node comes from lockkeeper.yaml:2; next: name one with --root",
			reachErr: "this node lists no roots that it reaches"},
		{file: several, named: "main", root: "main", reachErr: "LOCKKEEPER_ROOTS"},
		{file: several + "roots: [main]", root: "main"},
		{file: several + "roots: [main, site]", named: "site", root: "site"},
		{file: several + "roots: [main, site]", rootErr: "this node reaches main, site"},
	} {
		cfg, err := load(t, c.file)
		if err != nil {
			t.Fatal(err)
		}
		root, err := cfg.RootOf(c.named)
		if root != c.root || !says(err, c.rootErr) {
			t.Errorf("%q named %q: %q, %v", c.file, c.named, root, err)
		}
		if err := cfg.CheckReach(); !says(err, c.reachErr) {
			t.Errorf("%q: %v", c.file, err)
		}
	}
}

// says reports whether an error contains a text. An empty text means no error.
func says(err error, text string) bool {
	if text == "" || err == nil {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}
