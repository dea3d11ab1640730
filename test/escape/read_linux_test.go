package escape

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// homeSecrets lists the paths below a home directory where programs keep credentials.
var homeSecrets = []string{".pgpass", ".pg_service.conf", ".ssh/id_ed25519", ".gnupg/private-keys-v1.d/key", ".aws/credentials",
	".config/gcloud/credentials.db", ".azure/msal_token_cache.json", ".kube/config", ".docker/config.json", ".netrc",
	".git-credentials", ".npmrc", ".pypirc", ".cargo/credentials.toml", ".config/gh/hosts.yml", ".claude/.credentials.json",
	".codex/auth.json", ".gemini/oauth_creds.json", ".bash_history", "elsewhere/pgpass", "notes-nobody-listed"}

// secretVariables lists the variables of the run that contain a secret.
var secretVariables = []string{"PGPASSWORD", "LOCKKEEPER_TOKEN", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"}

func readAttempts() (list []attempt) {
	read := func(path func(w *world) string) func(w *world) error {
		return func(w *world) error { return w.find(os.ReadFile(path(w))) }
	}
	add := func(name string, try func(w *world) error) {
		list = append(list, attempt{name: name, try: try})
	}
	for _, path := range homeSecrets {
		add("read ~/"+path, read(func(w *world) string { return filepath.Join(w.Home, path) }))
	}
	for _, path := range []string{"tokens/other-space/grant", "access/other-space/servers/x.json"} {
		add("read the state of another codebase: "+path, read(func(w *world) string { return filepath.Join(w.State, path) }))
	}
	for _, dir := range []string{"people", "sessions", "servers"} {
		add("list "+dir+" of the server", func(w *world) error {
			_, err := os.ReadDir(filepath.Join(w.Access, dir))
			return err
		})
	}
	for _, end := range []string{"", "-wal"} {
		add("read the lock database"+end, func(w *world) error {
			_, err := os.ReadFile(filepath.Join(w.Root, ".lockkeeper", "state.db"+end))
			return err
		})
	}
	for _, name := range secretVariables {
		list = append(list, attempt{name: "read $" + name, try: func(w *world) error { return w.find([]byte(os.Getenv(name)), nil) }, moot: always("no command of a run is given it")})
	}
	add("read ~ through /proc/self/root", read(func(w *world) string { return "/proc/self/root/.." + filepath.Join(w.Home, homeSecrets[0]) }))
	add("read ~ through a symbolic link", func(w *world) error {
		defer os.Remove("link")
		return errors.Join(os.Symlink(filepath.Join(w.Home, homeSecrets[0]), "link"), w.find(os.ReadFile("link")))
	})
	add("read ~ through a hard link", func(w *world) error {
		defer os.Remove("hard")
		if err := os.Link(filepath.Join(w.Home, homeSecrets[0]), "hard"); err != nil {
			return err
		}
		return w.find(os.ReadFile("hard"))
	})
	list = append(list,
		attempt{name: "read the home of another user", root: true, try: func(w *world) error { return w.find(os.ReadFile(filepath.Join(w.Other, ".netrc"))) }},
		attempt{name: "read /etc/shadow", root: true, try: func(*world) error {
			text, err := os.ReadFile("/etc/shadow")
			if err == nil && !strings.Contains(string(text), "root:") {
				err = errors.New("it is empty")
			}
			return err
		}},
		attempt{name: "open a file of ~ by its handle", root: true, try: func(w *world) error {
			dir, err := unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(dir)
			fd, err := unix.OpenByHandleAt(dir, unix.NewFileHandle(w.HandleOf, w.Handle), unix.O_RDONLY)
			if err != nil {
				return err
			}
			f := os.NewFile(uintptr(fd), "handle")
			defer f.Close()
			text := make([]byte, 4096)
			n, err := f.Read(text)
			return w.find(text[:n], err)
		}})
	return list
}
