//go:build machines

package machines

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The agent of a distributed run counts its calls in the directory of the checker, from which no
// machine can remove them.
const joinedAgent = `name=$(sed -n 's/.*Please write \([a-z0-9]*\)[.].*/\1/p' | head -1)
echo "$name $(hostname)" >>%s/calls
sleep %g
echo "made $name" >src/$name.txt
`

const joinedConfig = `agent: {name: command, command: [sh, agent.sh], sandbox: off}
max_claude_concurrency: 4
run: {verify: "off", commit: "on", push: "on"}
`

// joinedBed makes a codebase with a plan of several tasks.
func joinedBed(t *testing.T, machines, tasks int, pace float64, config ...string) *bed {
	t.Helper()
	var list strings.Builder
	for i := range tasks {
		fmt.Fprintf(&list, "  - {name: t%[1]d, prompt: Please write t%[1]d., writes: [src/t%[1]d.txt]}\n", i)
	}
	return newBed(t, plan{machines: machines, serial: true, config: joinedConfig + strings.Join(config, ""), files: map[string]string{"tasks.yaml": "tasks:\n" + list.String(), ".gitignore": ".pipeline\n"},
		late: func(b *bed) map[string]string {
			return map[string]string{"agent.sh": fmt.Sprintf(joinedAgent, b.checker.dir, pace)}
		}})
}

// runAll runs the plan on the first machine, with the others, and returns how long it took.
func (b *bed) runAll() time.Duration {
	b.t.Helper()
	for _, m := range b.machines[1:] {
		joined := m.begin("lockkeeper", "run", "--join", "--stay", "--slots", "4")
		until(b.t, m.name+" waits for the run", func() bool { return strings.Contains(joined.out.String(), "waiting for a run") || joined.ended() })
	}
	run := b.machines[0].begin("lockkeeper", "run", "--plan", "tasks.yaml", "--no-ui")
	if run.code() != 0 {
		b.t.Fatal(run)
	}
	return run.took
}

// landed fails the test if a task has not landed in the server's branch, or if an agent was
// called more than once for it.
func (b *bed) landed(tasks int) {
	b.t.Helper()
	text := b.checker.read("calls")
	for i := range tasks {
		name := fmt.Sprintf("t%d", i)
		if got := b.hub.must("git", "-C", home+"/git/project", "show", "main:src/"+name+".txt"); got != "made "+name {
			b.t.Errorf("%s landed %q", name, got)
		}
		if n := strings.Count("\n"+text, "\n"+name+" "); n != 1 {
			b.t.Errorf("the agent was called %d times for %s", n, name)
		}
	}
	for _, m := range b.machines {
		if !strings.Contains(text, " "+m.name+"\n") {
			b.t.Errorf("%s made no call", m.name)
		}
	}
}

// Machines that join a run take calls of it. No call is paid twice, and everything lands at the
// git server.
func TestJoinedRun(t *testing.T) {
	t.Parallel()
	b := joinedBed(t, 3, 24, 2)
	t.Logf("took %v", b.runAll())
	b.landed(24)
	if torture() > 1 {
		joinedShare(t)
	}
}

// joinedShare fails the test if three machines with the same slots each need more than 0.45 of the
// time of one.
func joinedShare(t *testing.T) {
	t.Helper()
	const tasks = 40
	took := map[int]time.Duration{}
	for _, machines := range []int{1, 3} {
		took[machines] = joinedBed(t, machines, tasks, 8).runAll()
	}
	share := float64(took[3]) / float64(took[1])
	t.Logf("one machine %v, three %v: %.2f", took[1], took[3], share)
	if share > 0.45 {
		t.Errorf("three machines took %.2f of the time of one, want at most 0.45", share)
	}
}

// A run goes on as long as one machine is left: when the machine that conducts it loses its power, another one
// continues it, and the tree is the same in the end.
func TestConductorsKilled(t *testing.T) {
	t.Parallel()
	kills := 1
	if torture() > 1 {
		kills = 5
	}
	tasks := 8*kills + 4
	b := joinedBed(t, 3, tasks, 1, shortLease)
	join := func(m *machine) *command { return m.begin("lockkeeper", "run", "--join", "--stay", "--slots", "2") }
	conducts := map[*machine]*command{b.machines[0]: b.machines[0].begin("lockkeeper", "run", "--plan", "tasks.yaml", "--slots", "2", "--no-ui")}
	for _, m := range b.machines[1:] {
		conducts[m] = join(m)
	}
	now := b.machines[0]
	landed := func() int { return strings.Count(conducts[now].out.String(), " landed: ") }
	for range kills {
		until(t, "a landing on "+now.name, func() bool { return landed() > 0 || conducts[now].ended() })
		dead := now
		dead.kill()
		until(t, "another machine conducts", func() bool {
			for m, c := range conducts {
				if m != dead && strings.Contains(c.out.String(), "continues here") {
					now = m
				}
			}
			return now != dead
		})
		dead.start()
		conducts[dead] = join(dead)
	}
	if c := conducts[now]; c.code() != 0 {
		t.Fatal(c)
	}
	text := b.checker.read("calls")
	for i := range tasks {
		name := fmt.Sprintf("t%d", i)
		if got := b.hub.must("git", "-C", home+"/git/project", "show", "main:src/"+name+".txt"); got != "made "+name {
			t.Errorf("%s landed %q", name, got)
		}
		calls := strings.Count("\n"+text, "\n"+name+" ")
		if lost := strings.Count("\n"+text, "\n"+name+" "+b.machines[0].name+"\n"); kills == 1 && calls-lost > 1 || calls < 1 || calls > kills+1 {
			t.Errorf("the agent was called %d times for %s, %d of them on the lost machine", calls, name, lost)
		}
	}
}
