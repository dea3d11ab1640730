//go:build machines

package machines

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// land writes a file through the gate on a machine, commits it and pushes it.
func (m *machine) land(path, text string) *command {
	m.t.Helper()
	m.write("new", text)
	return m.begin("sh", "-ec", fmt.Sprintf(`cd %[1]s
grant=$(lockkeeper lock acquire --write %[2]s --wait 1m --ttl 5m)
lockkeeper gate write --grant "$grant" %[2]s <../new
git add %[2]s
git commit -qm Landed %[2]s
git push -q origin main
lockkeeper lock release "$grant"`, project, path))
}

const staleConfig = `agent: {name: command, command: [sh, agent.sh], sandbox: off, attempts: 1}
run: {commit: off, verify: off}
`

// No work starts on a clone that lacks a landing of another machine, whichever way it starts. It
// starts after a pull.
func TestStaleClone(t *testing.T) {
	b := newBed(t, plan{machines: 2, config: staleConfig, files: map[string]string{
		"agent.sh":     "cat >/dev/null; echo old content of an agent >>src/a.txt\n",
		"plan.yaml":    "tasks:\n  - {name: one, prompt: Change it., writes: [src/a.txt]}\n",
		"reading.yaml": "tasks:\n  - {name: two, prompt: Change it., writes: [src/b.txt], reads: [src/a.txt]}\n",
	}})
	first, stale := b.machines[0], b.machines[1]
	if c := first.land("src/a.txt", "landed on the first machine\n"); c.code() != 0 {
		t.Fatal(c)
	}
	worked := home + "/worked"
	touch := []string{"--", "touch", worked}
	for _, argv := range [][]string{
		{"lock", "acquire", "--write", "src/a.txt"},
		{"lock", "acquire", "--read", "src/a.txt"},
		{"lock", "acquire", "--read", "src"},
		{"lock", "acquire", "--read", "."},
		append([]string{"lock", "exec", "--write", "src/a.txt"}, touch...),
		append([]string{"lock", "exec", "--read", "src"}, touch...),
		append([]string{"lock", "exec", "--write", "src/b.txt", "--read", "."}, touch...),
		{"claim", "src/a.txt"},
		append([]string{"claim", "src/a.txt"}, touch...),
		{"run", "--plan", "plan.yaml"},
		{"run", "--plan", "reading.yaml"},
	} {
		// A claim belongs to the session of the shell that runs it.
		c := stale.begin(append([]string{"sh", "-c", "cd " + project + `; lockkeeper "$@"; code=$?; exit $code`, "sh"}, argv...)...)
		if c.code() == 0 || !strings.Contains(c.err.String()+c.out.String(), "behind") {
			t.Errorf("a clone that lacks a landing was not refused: %s", c)
			if argv[1] == "acquire" && c.code() == 0 {
				stale.must("lockkeeper", "lock", "release", strings.TrimSpace(c.out.String()))
			}
		}
	}
	if text := stale.read("project/src/a.txt"); text != "first\n" {
		t.Errorf("the file of the clone that lacks a landing has changed: %q", text)
	}
	if c := stale.begin("test", "-e", worked); c.code() == 0 {
		t.Error("a command ran on the clone that lacks a landing")
	}

	// A worker on this clone leaves the job alone until the clone has the landing.
	worker := stale.begin("lockkeeper", "job", "work", "--root", "main")
	until(t, "the job is queued", func() bool {
		c := first.begin(append([]string{"lockkeeper", "job", "submit", "--root", "main", "--key", "reads", "--read", "."}, touch...)...)
		return c.code() == 0 || worker.ended()
	})
	why := ""
	until(t, "the job waits for the clone", func() bool {
		why = first.must("lockkeeper", "why", "reads")
		return strings.Contains(why, "behind") || strings.Contains(why, "landing") || stale.has(worked)
	})
	if stale.has(worked) {
		t.Errorf("a job that reads everything ran on a clone that lacks a landing; it waited for: %s", why)
	}
	stale.must("git", "-C", project, "pull", "-q")
	until(t, "the job runs after the pull", func() bool { return stale.has(worked) })
	if c := stale.begin("lockkeeper", "lock", "exec", "--write", "src/a.txt", "--read", "src/b.txt", "--wait", "1m", "--", "true"); c.code() != 0 {
		t.Errorf("after the pull: %s", c)
	}
	if c := stale.begin("lockkeeper", "run", "--plan", "plan.yaml"); c.code() != 0 {
		t.Errorf("after the pull: %s", c)
	}
	if text := stale.read("project/src/a.txt"); text != "landed on the first machine\nold content of an agent\n" {
		t.Errorf("the run landed %q", text)
	}
}

// Machines that land at once, on a network that loses packets, lose no landing.
func TestLandings(t *testing.T) {
	b := newBed(t, plan{machines: 3, files: map[string]string{"src/log.txt": ""}})
	each := 3 * torture()
	for _, m := range b.machines {
		b.net.both(m, link{loss: 0.01, delay: 2 * time.Millisecond}, b.primary.machine, b.hub)
	}
	// A clone may become stale between the pull and the lock: then it pulls again.
	const script = `cd %s
for i in $(seq %d); do
  until git pull -q --ff-only && grant=$(lockkeeper lock acquire --write src/log.txt --wait 2m --ttl 5m 2>../said); do
    grep -q behind ../said
  done
  { cat src/log.txt; echo $(hostname)-$i; } >../new
  lockkeeper gate write --grant "$grant" src/log.txt <../new
  git commit -qm Landed src/log.txt
  git push -q origin main
  lockkeeper lock release "$grant"
done`
	var started []*command
	for _, m := range b.machines {
		started = append(started, m.begin("sh", "-ec", fmt.Sprintf(script, project, each)))
	}
	for _, c := range started {
		if c.code() != 0 {
			t.Error(c)
		}
	}
	text := b.hub.must("git", "-C", home+"/git/project", "show", "main:src/log.txt")
	for _, m := range b.machines {
		for i := range each {
			if line := fmt.Sprintf("%s-%d", m.name, i+1); strings.Count("\n"+text+"\n", "\n"+line+"\n") != 1 {
				t.Errorf("%s landed %d times", line, strings.Count("\n"+text+"\n", "\n"+line+"\n"))
			}
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
