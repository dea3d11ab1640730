package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
)

// Doors lists the sockets here of daemons that start programs for whoever asks,
// outside of any sandbox. Whoever does not trust a command hides them from it.
func Doors() []string {
	user := "/run/user/" + strconv.Itoa(os.Geteuid())
	var list []string
	for _, path := range []string{"/run/docker.sock", "/run/containerd", "/run/podman", "/run/crio",
		"/run/snapd.socket", "/run/dbus", "/run/systemd/private",
		user + "/bus", user + "/systemd", user + "/docker.sock", user + "/podman"} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			list = append(list, real)
		}
	}
	return list
}
