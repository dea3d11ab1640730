//go:build machines

package machines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A bed has everything for one test: people's machines with clones, a git server, and a primary
// database with its standby.
type bed struct {
	t        *testing.T
	net      *network
	dir      string
	machines []*machine
	hub      *machine // the git server
	primary  *database
	standby  *database // nil: none
	checker  *checker
}

// A plan says what a bed consists of.
type plan struct {
	machines int
	standby  bool
	settings string // lines of postgresql.conf of the databases
	store    func(*bed) string
	files    map[string]string            // of the codebase, without its configuration
	late     func(*bed) map[string]string // further files, whose content depends on the bed
	config   string                       // lines of lockkeeper.yaml
	serial   bool                         // newBed does not call t.Parallel
	skews    []time.Duration              // of the wall clocks of the machines
}

// numbers of the servers' addresses; people's machines count from 1.
const (
	hubNumber = 100 + iota
	primaryNumber
	standbyNumber
	poolNumber
)

func newBed(t *testing.T, p plan) *bed {
	t.Helper()
	if !p.serial {
		t.Parallel()
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed of the network: %d", seed)
	dir, err := os.MkdirTemp(disks, "bed-")
	must(t, err)
	// The context of a test ends before its cleanups, in which machines still end.
	b := &bed{t: t, dir: dir, net: newNetwork(context.WithoutCancel(t.Context()), seed), checker: newChecker(t)}
	t.Cleanup(func() {
		b.net.close()
		must(t, os.RemoveAll(dir))
	})
	b.hub = newMachine(t, b.net, dir, "hub", hubNumber)
	b.primary = newDatabase(t, newMachine(t, b.net, dir, "db1", primaryNumber), p.settings)
	if p.standby {
		b.standby = newStandby(t, newMachine(t, b.net, dir, "db2", standbyNumber), b.primary)
	}
	for i := range p.machines {
		m := newMachine(t, b.net, dir, fmt.Sprintf("m%d", i+1), i+1)
		m.env = append(m.env, "LOCKKEEPER_ROOTS=main")
		if i < len(p.skews) {
			m.env = append(m.env, fmt.Sprintf("%s=%d", skewVariable, int64(p.skews[i]/time.Second)))
		}
		pass := filepath.Join(m.disk, "home/.pgpass")
		must(t, os.WriteFile(pass, []byte("*:*:*:*:"+password+"\n"), 0o600))
		b.machines = append(b.machines, m)
	}
	url := store(b.primary)
	if b.standby != nil {
		url = store(b.primary, b.standby)
	}
	if p.store != nil {
		url = p.store(b)
	}
	b.share(p, url)
	return b
}

// share creates the codebase on the first machine, and clones it on the others.
func (b *bed) share(p plan, url string) {
	b.t.Helper()
	const origin = "git://10.77.0.100/project"
	b.hub.must("git", "init", "-q", "--bare", "-b", "main", home+"/git/project")
	b.hub.begin("git", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", "--base-path="+home+"/git")
	b.hub.waitListening(9418)
	first := b.machines[0]
	root := filepath.Join(first.disk, "home/project")
	must(b.t, os.Mkdir(root, 0o755))
	write := func(path, text string) {
		file := filepath.Join(root, path)
		must(b.t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
	}
	write("lockkeeper.yaml", fmt.Sprintf("store: %q\ndeployment: multi-node\ngate: {allowed_write_paths: [\".\"]}\n%s", url, p.config))
	write("src/a.txt", "first\n")
	write("src/b.txt", "first\n")
	for path, text := range p.files {
		write(path, text)
	}
	if p.late != nil {
		for path, text := range p.late(b) {
			write(path, text)
		}
	}
	first.must("git", "-C", project, "init", "-q", "-b", "main")
	first.must("git", "-C", project, "remote", "add", "origin", origin)
	first.must("lockkeeper", "init")
	first.must("git", "-C", project, "add", "-A")
	first.must("git", "-C", project, "commit", "-q", "-m", "Start")
	first.must("git", "-C", project, "push", "-q", "-u", "origin", "main")
	for _, m := range b.machines[1:] {
		m.must("git", "clone", "-q", origin, project)
		m.must("lockkeeper", "init")
	}
}

// waitListening waits until a program of the machine listens on a port.
func (m *machine) waitListening(port int) {
	m.t.Helper()
	until(m.t, fmt.Sprintf("port %d of %s is open", port, m.name), func() bool {
		c := m.begin("bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", port))
		return c.code() == 0
	})
}

// cut drops every packet between a machine and all others.
func (b *bed) cut(m *machine) { b.net.both(m, link{dropped: true}, b.others(m)...) }

func (b *bed) others(m *machine) (list []*machine) {
	all := append([]*machine{b.hub, b.primary.machine}, b.machines...)
	if b.standby != nil {
		all = append(all, b.standby.machine)
	}
	for _, o := range all {
		if o != m {
			list = append(list, o)
		}
	}
	return list
}
