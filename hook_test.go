package lockkeeper_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// hookLinks lists our packages that the program lockkeeper-hook may link. Hosts start it
// before every write, so it must be small: no flows, adapters of agents, workspaces, sandbox or server.
var hookLinks = []string{
	".", "cmd/lockkeeper-hook", "durable", "gate", "lock", "rescue", "store", "store/sqlstore", "tree",
	"internal/agent/program", "internal/encoding/shellword", "internal/git", "internal/git/gitcmd", "internal/landing",
	"internal/machine/boot", "internal/machine/disk", "internal/machine/filelock", "internal/machine/process",
	"internal/project", "internal/project/config", "internal/project/protect",
	"internal/session", "internal/session/deferred", "internal/session/hook", "internal/session/refusal", "internal/session/snapshot",
}

func TestHookLinksLittle(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/lockkeeper-hook").Output()
	if err != nil {
		t.Fatal(err)
	}
	unused := slices.Clone(hookLinks)
	for imported := range strings.FieldsSeq(string(list)) {
		dir, ours := own(imported)
		switch {
		case imported == "net/http":
			t.Error("the hook links net/http: it is neither a server nor a client")
		case ours && !slices.Contains(hookLinks, dir):
			t.Errorf("the hook links %s, which is not in hookLinks", dir)
		}
		unused = slices.DeleteFunc(unused, func(d string) bool { return d == dir && ours })
	}
	if len(unused) > 0 {
		t.Errorf("hookLinks names %v, which the hook does not link", unused)
	}
}
