package lockkeeper_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	"internal/project", "internal/project/config", "internal/project/generated", "internal/project/protect",
	"internal/session", "internal/session/deferred", "internal/session/hook", "internal/session/refusal", "internal/session/snapshot",
}

// hookOmits lists large packages of others that the hook must not link.
var hookOmits = []string{"net/http", "crypto/tls", "crypto/x509", "database/sql", "encoding/xml", "text/template", "html/template"}

func TestHookLinksLittle(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "nopostgres", "./cmd/lockkeeper-hook").Output()
	if err != nil {
		t.Fatal(err)
	}
	unused := slices.Clone(hookLinks)
	for imported := range strings.FieldsSeq(string(list)) {
		dir, ours := own(imported)
		switch {
		case slices.Contains(hookOmits, imported) || strings.HasPrefix(imported, "github.com/jackc/"):
			t.Errorf("the hook links %s, which is large and of no use to it", imported)
		case ours && !slices.Contains(hookLinks, dir):
			t.Errorf("the hook links %s, which is not in hookLinks", dir)
		}
		unused = slices.DeleteFunc(unused, func(d string) bool { return d == dir && ours })
	}
	if len(unused) > 0 {
		t.Errorf("hookLinks names %v, which the hook does not link", unused)
	}
}

// The limits are for linux/amd64, as docs/design.md states them.
func TestProgramsAreSmall(t *testing.T) {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		t.Skip("sizes differ between systems")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "make", "build", "BIN="+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, most := range map[string]int64{"lockkeeper": 40_000_000, "lockkeeper-hook": 12_000_000} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st.Size() > most {
			t.Errorf("%s has %d bytes, more than %d", name, st.Size(), most)
		}
	}
}
