package sqlstore

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"lockkeeper/lock"
	"lockkeeper/store"
)

// pooled returns the URL of a PgBouncer in transaction mode in front of the database.
func pooled(t *testing.T, where, more string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if _, err := os.Stat("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("pgbouncer is not installed; next: apt-get install pgbouncer")
		}
		program = "/usr/sbin/pgbouncer"
	}
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	dir, port := serverDir(t), freePort(t)
	config := fmt.Sprintf("[databases]\n* = host=%s port=%s user=%s password=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 100\n%s\n",
		u.Hostname(), u.Port(), u.User.Username(), password, port, more)
	path := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-q", path)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: serverUser(t)}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	eventually(t, func() error {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
		}
		return err
	})
	u.Host, u.User = fmt.Sprintf("127.0.0.1:%d", port), url.User(u.User.Username())
	return u.String()
}

// Through PgBouncer in transaction mode, whether it refuses or ignores settings of a session, everything works
// and nothing is left in a session of the server. Listeners poll.
func TestPostgresBehindPooler(t *testing.T) {
	for name, more := range map[string]string{
		"refuses settings": "ignore_startup_parameters = extra_float_digits",
		"ignores settings": "ignore_startup_parameters = extra_float_digits,search_path,lock_timeout,statement_timeout,idle_in_transaction_session_timeout,tcp_keepalives_idle,tcp_keepalives_interval,tcp_keepalives_count,default_transaction_isolation,synchronous_commit,plan_cache_mode,enable_seqscan,enable_hashjoin,enable_mergejoin,enable_bitmapscan,jit",
	} {
		t.Run(name, func(t *testing.T) {
			direct := freshDatabase(t)
			s := site{kind: "postgres", where: pooled(t, direct, more), space: "s"}
			if err := CreateSpace(t.Context(), s.where, s.space); err != nil {
				t.Fatal(err)
			}
			var given []uint64
			st, other := s.postgres(t, Options{}), s.postgres(t, Options{})
			m, n := lock.New(st, lock.Options{}), lock.New(other, lock.Options{})
			defer m.Close()
			defer n.Close()
			for i := range 20 {
				g, err := []*lock.Manager{m, n}[i%2].TryAcquire(t.Context(), request("h", "a"))
				if err != nil {
					t.Fatal(err)
				}
				higher(t, g.Fence, given)
				given = append(given, g.Fence)
				if _, err := n.TryAcquire(t.Context(), request("k", "a")); err == nil {
					t.Fatal("a held path was granted")
				}
				if err := g.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			held, err := m.TryAcquire(t.Context(), request("h", "a"))
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(300*time.Millisecond, func() { held.Release(t.Context()) })
			if _, err := n.Acquire(t.Context(), request("k", "a"), hung); err != nil {
				t.Errorf("a waiter: %v", err)
			}
			if err := st.View(t.Context(), func(r store.Reader) error { _, err := r.List(0, 10); return err }); err != nil {
				t.Error(err)
			}
			conn := foreignTo(t, direct)
			defer conn.Close(t.Context())
			var left int
			if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'`).Scan(&left); err != nil || left != 0 {
				t.Errorf("%d sessions are left in a transaction, %v", left, err)
			}
		})
	}
}

// A host that does not answer, before one that does, costs little.
func TestPostgresSilentHost(t *testing.T) {
	s := postgresSite(t)
	u, err := url.Parse(s.where)
	if err != nil {
		t.Fatal(err)
	}
	// A listener whose queue is full does not answer.
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	silent := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 3 {
		if conn, err := net.DialTimeout("tcp", silent, 100*time.Millisecond); err == nil {
			defer conn.Close()
		}
	}
	u.Host = silent + "," + u.Host
	s.where = u.String()
	within(t, 2*time.Second, func() {
		st, err := OpenPostgres(t.Context(), s.where, s.space, Options{})
		if err != nil {
			t.Fatal(err)
		}
		mark(t, st, "answered")
		st.Close()
	})
}
