package sqlstore

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A cluster is a PostgreSQL server of its own, for tests that promote, restore or kill a server.
type cluster struct {
	t    *testing.T
	data string
	port int
}

// postgresTool returns the path of a program of the newest PostgreSQL that is installed.
func postgresTool(t *testing.T, name string) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return slices.Max(found)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v; next: install PostgreSQL", err)
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// serverDir returns an empty directory for clusters, which the server's user owns.
func serverDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lockkeeper-cluster") // below t.TempDir the server's user could not reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if cred := serverUser(t); cred != nil {
		if err := os.Chown(dir, int(cred.Uid), int(cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// serverUser returns the user who runs servers, or nil for the user of the test. PostgreSQL
// refuses to run as root.
func serverUser(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// asServer runs a program of PostgreSQL as the user who owns the clusters.
func asServer(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), postgresTool(t, name), args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: serverUser(t)}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, data: filepath.Join(serverDir(t), "data"), port: freePort(t)}
	asServer(t, filepath.Dir(c.data), "initdb", "-D", c.data, "-U", "lockkeeper", "-A", "trust", "--no-locale", "-E", "UTF8", "-N")
	c.configure()
	c.start()
	return c
}

func (c *cluster) configure() {
	c.append("postgresql.auto.conf", fmt.Sprintf("port = %d\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nshared_buffers = 16MB\nwal_keep_size = 64MB\n", c.port))
}

// append adds lines to a file of the cluster.
func (c *cluster) append(name, text string) {
	c.t.Helper()
	f, err := os.OpenFile(filepath.Join(c.data, name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if cred := serverUser(c.t); err == nil && cred != nil {
		err = f.Chown(int(cred.Uid), int(cred.Gid))
	}
	if err := f.Close(); err != nil {
		c.t.Fatal(err)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

func (c *cluster) start() {
	c.t.Helper()
	asServer(c.t, filepath.Dir(c.data), "pg_ctl", "-D", c.data, "-s", "-w", "-t", "60", "-l", c.data+".log", "start")
	c.t.Cleanup(c.kill)
}

// kill ends the server as a power failure does.
func (c *cluster) kill() {
	c.t.Helper()
	if _, err := os.Stat(filepath.Join(c.data, "postmaster.pid")); err == nil {
		asServer(c.t, filepath.Dir(c.data), "pg_ctl", "-D", c.data, "-s", "-w", "-t", "60", "-m", "immediate", "stop")
	}
}

// standby starts a server that follows c.
func (c *cluster) standby() *cluster {
	c.t.Helper()
	s := &cluster{t: c.t, data: filepath.Join(serverDir(c.t), "data"), port: freePort(c.t)}
	asServer(c.t, filepath.Dir(s.data), "pg_basebackup", "-D", s.data, "-d", c.url(), "-R", "-c", "fast", "-X", "stream")
	s.configure()
	s.start()
	return s
}

// promote makes a standby the primary, and returns as soon as it accepts writes. It does not wait for
// the checkpoint that follows.
func (c *cluster) promote() {
	c.t.Helper()
	conn := foreignTo(c.t, c.url())
	defer conn.Close(context.Background())
	if _, err := conn.Exec(c.t.Context(), `SELECT pg_promote(false)`); err != nil {
		c.t.Fatal(err)
	}
	eventually(c.t, func() error {
		var standby bool
		err := conn.QueryRow(c.t.Context(), `SELECT pg_is_in_recovery()`).Scan(&standby)
		if err == nil && standby {
			err = fmt.Errorf("still a standby")
		}
		return err
	})
}

func (c *cluster) url() string {
	return fmt.Sprintf("postgres://lockkeeper@127.0.0.1:%d/postgres?sslmode=disable", c.port)
}

// ordinary creates a database and its owner, an ordinary user, and returns the site of a new space there.
func (c *cluster) ordinary() site {
	c.t.Helper()
	conn := foreignTo(c.t, c.url())
	defer conn.Close(context.Background())
	for _, sql := range []string{`CREATE ROLE ordinary LOGIN`, `CREATE DATABASE locks OWNER ordinary`} {
		if _, err := conn.Exec(c.t.Context(), sql); err != nil {
			c.t.Fatal(err)
		}
	}
	s := c.at(site{kind: "postgres", space: "s"})
	if err := CreateSpace(c.t.Context(), s.where, s.space); err != nil {
		c.t.Fatal(err)
	}
	return s
}

// at returns a site on another cluster that has the same database.
func (c *cluster) at(s site) site {
	s.where = fmt.Sprintf("postgres://ordinary@127.0.0.1:%d/locks?sslmode=disable", c.port)
	return s
}
