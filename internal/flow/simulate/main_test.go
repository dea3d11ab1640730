package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/simulate"
)

// plan parses items in a short form, one per line: a name, a duration, and then any of <reads,
// >writes, ^after, @project, =unit and the name of a phase. The default phase is analyze.
func plan(t testing.TB, text string) *simulate.Plan {
	t.Helper()
	p := &simulate.Plan{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		d, err := time.ParseDuration(words[1])
		if err != nil {
			t.Fatal(err)
		}
		it := simulate.Item{Name: words[0], Duration: d, Phase: "analyze"}
		for _, word := range words[2:] {
			rest := word[1:]
			switch word[0] {
			case '<':
				it.Reads = append(it.Reads, rest)
			case '>':
				it.Writes = append(it.Writes, rest)
			case '^':
				it.After = append(it.After, rest)
			case '@':
				it.Project = rest
			case '=':
				it.Unit = rest
			default:
				it.Phase = word
			}
		}
		p.Items = append(p.Items, it)
	}
	return p
}

func run(t testing.TB, p *simulate.Plan, slots int) *simulate.Report {
	t.Helper()
	rep, err := simulate.Run(t.Context(), p, simulate.Options{Slots: slots, Orders: 20})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// starts formats the start of each item, in the order of the starts.
func starts(rep *simulate.Report) string {
	var list []string
	for _, s := range rep.Schedule {
		list = append(list, fmt.Sprint(s.Name, " ", time.Duration(s.Start)))
	}
	return strings.Join(list, ", ")
}

// other returns when another scheduler finishes.
func other(t testing.TB, rep *simulate.Report, scheduler string) time.Duration {
	t.Helper()
	for _, o := range rep.Others {
		if o.Scheduler == scheduler {
			return time.Duration(o.Finish)
		}
	}
	t.Fatalf("no outcome of %s", scheduler)
	return 0
}

// read writes a plan to a file and reads it from there.
func read(t testing.TB, text string) (*simulate.Plan, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return simulate.ReadPlan(file, "plan.yaml", simulate.Times{})
}

// randomPlan generates items that read and write some of a few files and come after some earlier
// items.
func randomPlan(r *rand.Rand, items int) *simulate.Plan {
	files := []string{"app/a.rb", "app/b.rb", "app/views/c.erb", "app/views/d.erb", "lib/e.rb"}
	phases := []string{"analyze", "apply", "verify", "job"}
	p := &simulate.Plan{}
	for i := range items {
		it := simulate.Item{Name: fmt.Sprint("i", i), Phase: phases[r.IntN(len(phases))], Project: fmt.Sprint("p", r.IntN(3)),
			Duration: time.Duration(1+r.IntN(600)) * time.Second}
		for _, f := range files {
			switch r.IntN(8) {
			case 0:
				it.Writes = append(it.Writes, f)
			case 1, 2:
				it.Reads = append(it.Reads, f)
			}
		}
		if r.IntN(10) == 0 {
			it.Reads = append(it.Reads, "app/views/")
		}
		for before := range i {
			if r.IntN(items) == 0 {
				it.After = append(it.After, fmt.Sprint("i", before))
			}
		}
		p.Items = append(p.Items, it)
	}
	return p
}

// locksOf returns the locks of a test's item.
func locksOf(it simulate.Item) (locks []lockkeeper.Lock) {
	for _, p := range it.Reads {
		locks = append(locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: strings.TrimSuffix(p, "/"), Kind: lockkeeper.File}, Mode: lockkeeper.Read})
	}
	for _, p := range it.Writes {
		locks = append(locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: p, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
	}
	return locks
}

func conflict(a, b simulate.Item) bool {
	for _, l := range locksOf(a) {
		for _, m := range locksOf(b) {
			if l.Conflicts(m) {
				return true
			}
		}
	}
	return false
}
