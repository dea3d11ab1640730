//go:build machines

package machines

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// password is that of the database roles lock and replica.
const password = "k33per"

// A database is a machine with a PostgreSQL server.
type database struct {
	*machine
	server *command
}

const data = home + "/data" // of the server, as its machine sees it

// asServer runs a command as the user who owns the server, because PostgreSQL refuses root.
func asServer(cmd *exec.Cmd) {
	uid, gid := serverUser()
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	cmd.Dir = "/tmp"
}

func serverUser() (uid, gid int) {
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ = strconv.Atoi(u.Uid)
			gid, _ = strconv.Atoi(u.Gid)
			return uid, gid
		}
	}
	return 65534, 65534
}

// template makes a cluster once, which every test copies.
var template = sync.OnceValues(func() (dir string, err error) {
	server, err := postgresBin()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(disks, "template")
	uid, gid := serverUser()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return "", err
	}
	as := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	for _, step := range []struct{ program, args, input string }{
		{"initdb", "--username=postgres --encoding=UTF8 --no-locale --auth=trust --no-sync -D " + dir, ""},
		{"postgres", "--single -D " + dir + " postgres", fmt.Sprintf("CREATE ROLE lock LOGIN PASSWORD '%s'\nCREATE ROLE replica REPLICATION LOGIN PASSWORD '%s'\nCREATE DATABASE locks OWNER lock\n", password, password)},
	} {
		cmd := exec.Command(filepath.Join(server, step.program), strings.Fields(step.args)...)
		cmd.SysProcAttr, cmd.Dir, cmd.Stdin = as, "/", strings.NewReader(step.input)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "ERROR") {
			return "", fmt.Errorf("%s: %v\n%s", step.program, err, out)
		}
	}
	access := "local all all trust\nhost all all 127.0.0.1/32 trust\nhost all all 10.77.0.0/24 scram-sha-256\nhost replication replica 10.77.0.0/24 scram-sha-256\n"
	return dir, os.WriteFile(filepath.Join(dir, "pg_hba.conf"), []byte(access), 0o600)
})

// baseSettings are those of every server. The limits of connections notice a dead peer after some
// seconds, because the tests cut links.
const baseSettings = `listen_addresses = '*'
unix_socket_directories = '/tmp'
shared_buffers = 32MB
min_wal_size = 32MB
max_wal_size = 256MB
wal_level = replica
hot_standby = on
timezone = 'UTC'
lc_messages = 'C'
log_min_messages = warning
tcp_keepalives_idle = 2
tcp_keepalives_interval = 2
tcp_keepalives_count = 3
wal_receiver_timeout = 5s
wal_sender_timeout = 5s
`

// newDatabase starts a machine with a server of its own. settings are lines of postgresql.conf.
func newDatabase(t *testing.T, m *machine, settings string) *database {
	t.Helper()
	from, err := template()
	must(t, err)
	d := &database{machine: m}
	out, err := exec.Command("cp", "-a", from, filepath.Join(m.disk, "home/data")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, os.Chmod(filepath.Join(m.disk, "home"), 0o755))
	d.configure(baseSettings + settings)
	d.startServer()
	return d
}

// newStandby starts a machine with a server that follows another. The primary waits for it if it
// has synchronous_standby_names = '*'.
func newStandby(t *testing.T, m *machine, primary *database) *database {
	t.Helper()
	d := &database{machine: m}
	must(t, os.Chmod(filepath.Join(m.disk, "home"), 0o755), os.Mkdir(filepath.Join(m.disk, "home/data"), 0o700))
	uid, gid := serverUser()
	must(t, os.Chown(filepath.Join(m.disk, "home/data"), uid, gid))
	from := fmt.Sprintf("host=%s user=replica password=%s application_name=%s", primary.addr(), password, m.name)
	if c := d.tool("pg_basebackup", "-D", data, "-R", "-X", "stream", "--checkpoint=fast", "-d", from); c.code() != 0 {
		t.Fatal(c)
	}
	d.startServer()
	return d
}

// configure appends lines to the server's configuration.
func (d *database) configure(lines string) {
	d.t.Helper()
	f, err := os.OpenFile(filepath.Join(d.disk, "home/data/postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	must(d.t, err)
	_, err = f.WriteString(lines)
	must(d.t, err, f.Close())
}

// tool starts a program of PostgreSQL as the server's user.
func (d *database) tool(program string, args ...string) *command {
	d.t.Helper()
	server, err := postgresBin()
	must(d.t, err)
	return d.beginWith(asServer, append([]string{filepath.Join(server, program)}, args...)...)
}

// startServer starts the server and waits until it answers. After a crash the kernel may still
// have the memory of the old server for a moment.
func (d *database) startServer() {
	d.t.Helper()
	until(d.t, "PostgreSQL answers on "+d.name, func() bool {
		if d.server == nil || d.server.ended() {
			d.server = d.tool("postgres", "-D", data)
		}
		return d.tool("pg_isready", "-q", "-h", "/tmp").code() == 0
	})
}

// crash kills the server with SIGKILL. Its other processes notice it and end.
func (d *database) crash() {
	d.server.kill()
	<-d.server.done
}

// stopServer ends the server as an administrator does.
func (d *database) stopServer() {
	d.t.Helper()
	d.server.cmd.Process.Signal(syscall.SIGINT)
	d.server.code()
}

// sql runs statements on the server as its administrator and returns the rows.
func (d *database) sql(text string) string {
	d.t.Helper()
	return d.must("psql", "-h", "/tmp", "-U", "postgres", "-d", "locks", "-v", "ON_ERROR_STOP=1", "-qtAc", text)
}

// promote makes a standby the primary.
func (d *database) promote() {
	d.t.Helper()
	if got := d.sql("SELECT pg_promote()"); got != "t" {
		d.t.Fatalf("%s was not promoted: %s", d.name, got)
	}
}

// store returns the URL of the locks in databases, in this order.
func store(list ...*database) string {
	hosts := make([]string, len(list))
	for i, d := range list {
		hosts[i] = d.addr() + ":5432"
	}
	url := "postgres://lock@" + strings.Join(hosts, ",") + "/locks?sslmode=disable"
	if len(list) > 1 {
		url += "&target_session_attrs=read-write"
	}
	return url
}
