package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Find returns the programs and packages of tools, and no files with credentials.
func TestFind(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(base, "home")
	for name, text := range map[string]string{
		".cargo/bin/cargo": "", ".cargo/credentials.toml": "", ".cargo/registry/index": "", ".rustup/toolchains/stable/bin/rustc": "",
		".fly/bin/flyctl": "", ".fly/config.yml": "", ".fly/lib/data": "",
		".nvm/versions/node/v20/bin/node": "", ".npmrc": "", ".npm/_cacache/entry": "", ".npm/_logs/log": "",
		".local/bin/script": "#!" + home + "/venvs/tool/bin/python\n", ".local/share/keyrings/login.keyring": "", "venvs/tool/bin/python": "", "venvs/tool/pyvenv.cfg": "", "venvs/tool/lib/x": "",
		"venvs/other/secret": "", "bin/mine": "", "lib/own": "", "projects/a/.env": "", "projects/a/bin/run": "", ".m2/settings.xml": "", ".m2/repository/jar": "",
		"apps/agent/node_modules/@x/cli/cli.js": "", "apps/agent/node_modules/.bin/.keep": "", "apps/agent/token": "", ".local/share/claude/versions/2": "", ".local/share/claude/other": "",
		"go/pkg/mod/m": "", "go/src/private/x": "", "moved/gocache/x": "", "certs/ca.pem": "",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{".local/bin/claude": "../share/claude/versions/2", "apps/agent/node_modules/.bin/cli": "../@x/cli/cli.js", "linked": "projects/a/bin"} {
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	path := []string{home + "/.cargo/bin", home + "/.fly/bin", home + "/.nvm/versions/node/v20/bin", home + "/.local/bin", home + "/bin", home + "/linked", home, base, "/", "relative", "", "/usr/bin", home + "/missing"}
	env := map[string]string{"HOME": home, "PATH": strings.Join(path, ":"), "GOCACHE": home + "/moved/gocache", "SSL_CERT_FILE": home + "/certs/ca.pem", "VIRTUAL_ENV": base, "JAVA_HOME": "/"}
	found := Find(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, home+"/apps/agent/node_modules/.bin/cli", "claude", "no-such-program")
	shown := func(list []string, name string) bool {
		return slices.ContainsFunc(list, func(dir string) bool { return strings.HasPrefix(filepath.Join(home, name)+"/", dir+"/") })
	}
	var caches []string
	for _, c := range found.Caches {
		caches = append(caches, c.Path)
		if c.Built != (filepath.Base(c.Path) == "gocache" || c.Path == home+"/.cache/golangci-lint" || c.Path == home+"/.cache/ccache") {
			t.Errorf("%+v", c)
		}
	}
	for _, name := range []string{".cargo/bin/cargo", ".rustup/toolchains/stable/bin/rustc", ".fly/bin/flyctl", ".fly/lib/data", ".nvm/versions/node/v20/bin/node", ".local/bin/script",
		"venvs/tool/lib/x", "bin/mine", "projects/a/bin/run", "apps/agent/node_modules/@x/cli/cli.js", ".local/share/claude/versions/2", "certs/ca.pem"} {
		if !shown(found.Read, name) {
			t.Errorf("%s is not shown", name)
		}
	}
	for _, name := range []string{".cargo/registry/index", ".npm/_cacache/entry", ".m2/repository/jar", "go/pkg/mod/m", "moved/gocache/x", ".cache/ccache/missing"} {
		if !shown(caches, name) {
			t.Errorf("%s is no cache", name)
		}
	}
	for _, name := range []string{".cargo/credentials.toml", ".fly/config.yml", ".npmrc", ".npm/_logs/log", ".local/share/keyrings/login.keyring", "venvs/other/secret", "lib/own",
		"projects/a/.env", ".m2/settings.xml", "apps/agent/token", ".local/share/claude/other", "go/src/private/x"} {
		if shown(found.Read, name) || shown(caches, name) {
			t.Errorf("%s is shown", name)
		}
	}
	t.Logf("%+v", found)
}
