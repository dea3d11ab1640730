package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/project/config"
	"lockkeeper/sched"
)

// A Plan is work to simulate.
type Plan struct {
	Items []Item

	Sources map[Source]int // for a plan of tasks: where the durations come from; nil for a plan of items
	Assumed time.Duration  // the duration of tasks that nothing is known about
}

// An Item is work for one agent under one grant.
type Item struct {
	Name     string // unique
	Phase    string // default: sched.DefaultPhase
	Project  string // projects of one rank take turns
	Unit     string // screen, controller, batch or empty
	Duration time.Duration
	Tests    time.Duration // the part of Duration after that in the slot of an agent, in a slot for tests
	Outside  time.Duration // the last part of Duration, without a slot
	Reads    []string      // files, and directories
	Writes   []string      // files
	After    []string      // names of the items that must complete first

	at      string   // position of the item in the plan file; empty: none
	refused []string // keys with invalid values
}

// These limits of a plan keep sums of time far from overflow.
const (
	maxItems    = 10_000
	maxDuration = 7 * 24 * time.Hour
)

// The kinds of units that an item works on.
const (
	unitScreen     = "screen"
	unitController = "controller"
	unitBatch      = "batch"
)

// locks returns the locks of an item. The path of a directory ends with a slash.
func (it *Item) locks() []lockkeeper.Lock {
	var locks []lockkeeper.Lock
	add := func(mode lockkeeper.Mode, paths []string) {
		for _, p := range paths {
			target := lockkeeper.Target{Path: p, Kind: lockkeeper.File}
			if dir, ok := strings.CutSuffix(p, "/"); ok && dir != "" {
				target = lockkeeper.Target{Path: dir, Kind: lockkeeper.Dir}
			}
			locks = append(locks, lockkeeper.Lock{Target: target, Mode: mode})
		}
	}
	add(lockkeeper.Read, it.Reads)
	add(lockkeeper.Write, it.Writes)
	return lockkeeper.Normalize(locks)
}

// controller returns the controller of an item: posts for the screen posts/index and the batch
// posts/1. Other items are their own controller.
func (it *Item) controller() string {
	if i := strings.LastIndexByte(it.Name, '/'); i > 0 && (it.Unit == unitScreen || it.Unit == unitBatch) {
		return it.Name[:i]
	}
	return it.Name
}

// phases returns the phases that an item of a plan can have.
func phases() sched.Phases { return flow.QueueOrder() }

func (it *Item) phase() string {
	if it.Phase == "" {
		return sched.DefaultPhase
	}
	return it.Phase
}

// position returns the name of an item in messages.
func (it *Item) position() string {
	if it.at == "" {
		return "item " + it.Name
	}
	return it.at
}

func (it *Item) refuse(field, value, reason, next string) error {
	return &lockkeeper.InputError{Field: it.position() + ": " + field, Value: value, Reason: reason, Next: next}
}

func (it *Item) isRefused(key string) bool { return slices.Contains(it.refused, key) }

// check refuses an invalid plan, with all problems at once.
func (p *Plan) check() error {
	switch n := len(p.Items); {
	case n == 0:
		return &lockkeeper.InputError{Field: "items", Reason: "missing", Next: "list the work under items:"}
	case n > maxItems:
		return &lockkeeper.InputError{Field: "items", Value: fmt.Sprint(n), Reason: fmt.Sprintf("over the limit of %d", maxItems), Next: "simulate a part of the plan"}
	}
	byName := map[string]*Item{}
	var names []string
	var problems []error
	for i := range p.Items {
		it := &p.Items[i]
		first := byName[it.Name]
		switch {
		case it.isRefused("name"):
		case it.Name == "":
			problems = append(problems, it.refuse("name", "", "missing", "give each item a unique name"))
		case first != nil:
			problems = append(problems, it.refuse("name", it.Name, "used before, by "+first.position(), "give each item a unique name"))
		default:
			byName[it.Name] = it
			names = append(names, it.Name)
		}
	}
	dirs := p.directories()
	for i := range p.Items {
		it := &p.Items[i]
		problems = append(problems, it.check()...)
		problems = append(problems, it.checkLocks(dirs)...)
		for _, name := range it.After {
			if byName[name] == nil && !it.isRefused("after") {
				problems = append(problems, it.refuse("after", name, "no item has this name", meant(name, names, "name an item of the plan")))
			}
		}
	}
	if problems == nil { // names are unique, and predecessors exist
		problems = findCycle(p.Items, byName)
	}
	return errors.Join(problems...)
}

// findCycle refuses items that wait for each other.
func findCycle(items []Item, byName map[string]*Item) []error {
	done := map[string]bool{}
	var path []string
	var visit func(it *Item) []error
	visit = func(it *Item) []error {
		if i := slices.Index(path, it.Name); i >= 0 {
			return []error{it.refuse("after", strings.Join(append(path[i:], it.Name), " → "), "they wait for each other", "remove one of the dependencies")}
		}
		if done[it.Name] {
			return nil
		}
		path = append(path, it.Name)
		for _, name := range it.After {
			if problem := visit(byName[name]); problem != nil {
				return problem
			}
		}
		path = path[:len(path)-1]
		done[it.Name] = true
		return nil
	}
	for i := range items {
		if problem := visit(&items[i]); problem != nil {
			return problem
		}
	}
	return nil
}

const maxNameSize = 200

// unprintable reports whether a name has control characters or is too long.
func unprintable(name string) bool {
	return len(name) > maxNameSize || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// meant suggests the nearest known name after an unknown one, or else returns otherwise.
func meant(typed string, known []string, otherwise string) string {
	if near, ok := config.Nearest(typed, known); ok {
		return "did you mean " + near + "?"
	}
	return otherwise
}

func (it *Item) check() (problems []error) {
	bad := func(field, value, reason, next string) {
		problems = append(problems, it.refuse(field, value, reason, next))
	}
	for _, text := range []struct{ field, value string }{{"name", it.Name}, {"project", it.Project}} {
		if unprintable(text.value) {
			bad(text.field, text.value, fmt.Sprintf("over %d bytes, or with characters that cannot be printed", maxNameSize), "use plain text")
		}
	}
	if it.Project == "*" {
		bad("project", it.Project, "reserved", "name the project")
	}
	if _, known := phases().Rank(it.phase()); !known && !it.isRefused("phase") {
		bad("phase", it.Phase, "unknown phase", meant(it.Phase, phases().Names(), "use one of "+phases().String()))
	}
	if known := []string{"", unitScreen, unitController, unitBatch}; !slices.Contains(known, it.Unit) && !it.isRefused("unit") {
		bad("unit", it.Unit, "unknown unit", "use screen, controller or batch, or leave it out")
	}
	switch {
	case it.isRefused("duration"):
	case it.Duration == 0:
		bad("duration", "", "missing", "say how long it will take, such as 2m")
	case it.Duration < 0:
		bad("duration", it.Duration.String(), "negative", "say how long it will take, such as 2m")
	case it.Duration > maxDuration:
		bad("duration", it.Duration.String(), "longer than a week", "plan it in smaller pieces")
	}
	return problems
}

// directories returns the paths that have paths below them in the plan.
func (p *Plan) directories() map[string]bool {
	dirs := map[string]bool{}
	for i := range p.Items {
		for _, l := range p.Items[i].locks() {
			if l.Kind == lockkeeper.Dir {
				dirs[l.Path] = true
			}
			for dir, ok := lockkeeper.Parent(l.Path); ok && !dirs[dir]; dir, ok = lockkeeper.Parent(dir) {
				dirs[dir] = true
			}
		}
	}
	return dirs
}

func (it *Item) checkLocks(dirs map[string]bool) (problems []error) {
	for _, l := range it.locks() {
		var wrong *lockkeeper.InputError
		switch err := l.Validate(); {
		case errors.As(err, &wrong):
			problems = append(problems, it.refuse(l.Mode.String()+"s", l.Path, wrong.Reason, wrong.Next))
		case l.Mode == lockkeeper.Write && dirs[l.Path]:
			over := &lockkeeper.OverLockError{Holder: it.Name, Path: l.Path, Policy: lockkeeper.DefaultPolicy}
			problems = append(problems, fmt.Errorf("%s: %w", it.position(), over))
		}
	}
	return problems
}
