package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/machine/machinetest"
)

// credentials are files of a home directory that no command may read.
var credentials = []string{".ssh/id_ed25519", ".gnupg/private-keys-v1.d/key", ".pgpass", ".pg_service.conf", ".netrc", ".npmrc", ".aws/credentials",
	".config/gh/hosts.yml", ".config/gcloud/credentials.db", ".docker/config.json", ".kube/config", ".git-credentials", ".m2/settings.xml",
	".claude/.credentials.json", ".codex/auth.json", ".local/share/keyrings/login.keyring",
	".local/state/lockkeeper/access/space/key", ".local/state/lockkeeper/access/space/servers/x.json", ".local/state/lockkeeper/tokens/space/grant",
	".tool/credentials.toml", "notes.txt"}

// home creates a home directory with secrets and a tool. It returns a Confinement that lists the
// tool, a cache and one agent's own directory.
func (s *scene) home() (string, Confinement) {
	s.t.Helper()
	home := s.dir + "/people/one"
	files := append([]string{".tool/lib/data", ".cache/tool/entry", ".agent/login"}, credentials...)
	for _, name := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			s.t.Fatal(err)
		}
		s.put(filepath.Join(home, name), "secret "+name)
	}
	if err := os.MkdirAll(home+"/.tool/bin", 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(home+"/.tool/bin/tool", []byte("#!/bin/sh\nexec cat \"$(dirname \"$(realpath \"$0\")\")/../lib/data\"\n"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	private := s.dir + "/work/private"
	if err := os.Mkdir(private, 0o700); err != nil {
		s.t.Fatal(err)
	}
	c := s.confinement()
	c.Private = private
	c.Write = append(c.Write, home+"/.agent")
	c.Read = append(c.Read, home+"/.tool/bin", home+"/.tool/lib")
	c.Scratch = []Scratch{{Path: home + "/.cache/tool"}}
	s.env = append(s.env, "HOME="+home, "PATH="+home+"/.tool/bin:"+os.Getenv("PATH"))
	return home, c
}

// A command can read only listed files of a home directory, and nothing of the store and of the
// system's secrets.
//
// shows: GP-5
func TestSecretsAreOutOfReach(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		home, c := s.home()
		paths := []string{s.store + "/state.db", s.store, home + "/.ssh", "/etc/shadow", "/etc/gshadow", "/etc/ssl/private", "/root/.ssh", "/proc/1/environ"}
		for _, name := range credentials {
			paths = append(paths, filepath.Join(home, name))
		}
		argv, err := Wrap(l, c, append([]string{"sh", "-c", `for f; do cat "$f" 2>/dev/null; ls -A "$f" 2>/dev/null | grep -v "^$f\$"; done; ls -A "$0"/../.. "$0"/.. "$0"`, home}, paths...))
		if err != nil {
			t.Fatal(err)
		}
		said, _ := s.start(argv)
		if strings.Contains(said, "secret") || strings.Contains(said, "root:") || strings.Contains(said, "id_ed25519") || strings.Contains(said, "state.db") || strings.Contains(said, "notes.txt") {
			t.Errorf("it read: %s", said)
		}
		if said, _ := s.startNamed(l, c, append([]string{"sh", "-c", `for f; do test ! -e "$f" || echo "$f"; done`, "sh"}, paths...)...); l.Hides() {
			for line := range strings.Lines(said) {
				if !strings.HasPrefix(line, "/etc/") && !strings.HasPrefix(line, "/proc/") {
					t.Errorf("it sees %s", line)
				}
			}
		}
	})
}

func (s *scene) startNamed(l Level, c Confinement, argv ...string) (string, int) {
	s.t.Helper()
	argv, err := Wrap(l, c, argv)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.start(argv)
}

// Listed paths in a home directory work under their usual names. The rest of the home directory
// is empty and private.
func TestNamedInHomeWorks(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		home, c := s.home()
		said, code := s.startNamed(l, c, "sh", "-ec", `tool; echo; cat ~/.cache/tool/entry ~/.agent/login; echo renewed > ~/.agent/login
			echo mine > ~/mine; mkdir -p ~/.config/x ~/.tool; echo mine > ~/.config/x/y; cat ~/mine ~/.tool/lib/data
			! echo changed > ~/.tool/lib/data`)
		if code != 0 || strings.Count(said, "secret .tool/lib/data") != 2 || !strings.Contains(said, "secret .agent/login") || !strings.Contains(said, "secret .cache/tool/entry") {
			t.Errorf("code %d: %s", code, said)
		}
		for name, want := range map[string]string{".agent/login": "renewed\n", ".tool/lib/data": "secret .tool/lib/data"} {
			if text, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(text) != want {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
		if _, err := os.Lstat(home + "/mine"); err == nil {
			t.Error("it wrote into the true home")
		}
	})
}

// A command can write into a cache, but the next command does not see the changes.
func TestScratchIsDiscarded(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		home, c := s.home()
		said, code := s.startNamed(l, c, "sh", "-c", `cat ~/.cache/tool/entry && echo poison > ~/.cache/tool/entry && echo x > ~/.cache/tool/new && cat ~/.cache/tool/entry`)
		if l.Namespaces && (code != 0 || !strings.HasSuffix(said, "poison\n")) || !strings.HasPrefix(said, "secret .cache/tool/entry") {
			t.Errorf("code %d: %s", code, said)
		}
		if text, err := os.ReadFile(home + "/.cache/tool/entry"); err != nil || string(text) != "secret .cache/tool/entry" {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := os.Lstat(home + "/.cache/tool/new"); err == nil {
			t.Error("the cache has it")
		}
	})
}

// A command finds the layers below a cache, also below a missing one, and its changes go where the
// caller wants them. It works at another path of its workspace.
func TestScratchHasLayers(t *testing.T) {
	l := best(t)
	if !l.Namespaces {
		machinetest.Lacks(t, "namespaces")
	}
	s := newScene(t)
	home, c := s.home()
	layers := []string{s.dir + "/layers: 1/upper", s.dir + "/layers: 2/upper"}
	for i, dir := range layers {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		s.put(dir+"/entry", "hidden\n")
		s.put(dir+"/"+fmt.Sprint("added", i), "layer\n")
		s.put(dir+"/both", fmt.Sprint("layer ", i, "\n"))
	}
	c.Scratch = []Scratch{{Path: home + "/.cache/tool", Below: layers, Changes: s.dir + "/kept"}, {Path: home + "/.cache/none", Below: layers}}
	s.env = append(s.env, "PWD="+s.workspace)
	c.Places = map[string]string{s.workspace: s.dir + "/elsewhere/tree"}
	said, code := s.startNamed(l, c, "sh", "-ec", `cd ~/.cache/tool; cat entry; echo; cat both added0 added1; echo new >new; echo over >added0; rm added1; cat ../none/both; cd "$OLDPWD"; pwd; cat file; echo more >made`)
	if want := "secret .cache/tool/entry\nlayer 0\nlayer\nlayer\nlayer 0\n" + s.dir + "/elsewhere/tree\nmine"; code != 0 || said != want {
		t.Fatalf("code %d: %s", code, said)
	}
	for file, want := range map[string]string{s.dir + "/kept/upper/new": "new\n", s.dir + "/kept/upper/added0": "over\n", layers[0] + "/added0": "layer\n", layers[1] + "/added1": "layer\n", s.workspace + "/made": "more\n"} {
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	for _, file := range []string{home + "/.cache/tool/new", home + "/.cache/none", s.dir + "/kept/upper/both", s.dir + "/elsewhere"} {
		if _, err := os.Lstat(file); err == nil {
			t.Errorf("%s exists", file)
		}
	}
}

// An ordinary user has the same restrictions and permissions.
func TestOrdinaryUserSeesWhatIsNamed(t *testing.T) {
	eachLevelOfUsers(t, func(t *testing.T, l Level) {
		s, h := newScene(t), listen(t)
		home, c := s.home()
		if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", nobody, nobody), s.dir+"/people", c.Private).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		// The caller of Wrap makes the private directories. Outside of tests the caller is the
		// same user.
		argv, err := Wrap(l, c, []string{"sh", "-c", `cat ~/.ssh/id_ed25519 ~/notes.txt "$0" /etc/shadow; ls -A ~; tool; echo; echo x > ~/mine && echo x > ~/.agent/new && echo works`, s.store + "/state.db"})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", nobody, nobody), c.Private).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		cmd := s.asNobody(h, argv)
		cmd.Env = append(Environ(os.Environ(), s.temp), s.env...)
		cmd.Env = append(cmd.Env, "HOME="+home)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		h.out.Close()
		h.in.SetReadDeadline(time.Now().Add(hung))
		said := &strings.Builder{}
		h.lines.WriteTo(said)
		if got := said.String(); got != ".agent\n.cache\n.tool\nsecret .tool/lib/data\nworks\n" {
			t.Errorf("%q", got)
		}
	})
}

// Programs of the system and of toolchains run.
func TestProgramsRun(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		for _, test := range []struct{ program, argument, script string }{
			{"python3", "-c", `import ssl, multiprocessing as m; q = m.Queue(); q.put(1); assert q.get() == 1; assert ssl.create_default_context().cert_store_stats()["x509"] > 0`},
			{"node", "-e", `require("os").cpus().length; require("os").userInfo(); require("fs").writeFileSync("out", "x")`},
			{"perl", "-e", `open(F, ">", "out") or die; print F getpwuid($<)`},
		} {
			program, err := exec.LookPath("/usr/bin/" + test.program)
			if err != nil {
				t.Logf("no %s here", test.program)
				continue
			}
			if said, code := s.run(l, program, test.argument, test.script); code != 0 {
				t.Errorf("%s: code %d: %s", test.program, code, said)
			}
		}
	})
}

// A program can be started through a link.
func TestLinkedProgramRuns(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		home, c := s.home()
		if err := os.Symlink(home+"/.tool/bin/tool", s.dir+"/agent"); err != nil {
			t.Fatal(err)
		}
		if said, code := s.startNamed(l, c, s.dir+"/agent"); code != 0 || said != "secret .tool/lib/data" {
			t.Errorf("code %d: %s", code, said)
		}
	})
}

// If the sandbox hides a program, the error says so.
func TestHiddenProgramSaysSo(t *testing.T) {
	l, s := best(t), newScene(t)
	if err := os.WriteFile(s.store+"/program", []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	said, code := s.run(l, s.store+"/program")
	if l.Namespaces && (code != 127 || !strings.Contains(said, "agent.read")) || strings.Contains(said, "ran") {
		t.Errorf("code %d: %s", code, said)
	}
}

// Commands cannot use the kernel's key rings.
func TestKeyRings(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		said, _ := newScene(t).run(l, helperArgv("grope")...)
		if strings.Contains(said, "keys") {
			t.Error(said)
		}
	})
}

// With namespaces, root cannot see the names of other users' keys.
func TestKeyLists(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		said, code := newScene(t).run(l, "cat", "/proc/keys", "/proc/key-users")
		if l.Namespaces && os.Geteuid() == 0 && (code != 0 || said != "") {
			t.Errorf("code %d: %s", code, said)
		}
	})
}
