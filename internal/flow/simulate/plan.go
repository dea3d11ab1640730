package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project/config"
	"lockkeeper/sched"
)

// Plan is work that is not begun.
type Plan struct{ Items []Item }

// Item is one piece of it, which one agent does under one grant.
type Item struct {
	Name     string // no two have the same
	Phase    string // default: sched.DefaultPhase
	Project  string // those of one rank take turns
	Unit     string // screen, controller, batch or empty
	Duration time.Duration
	Reads    []string // files, and directories
	Writes   []string // files
	After    []string // names of what has to be completed first

	at      string   // its place in the file of the plan; empty: it is from none
	refused []string // keys whose values the reader of the file has refused
}

// Limits of a plan, which keep sums of time far from overflow.
const (
	maxItems    = 10_000
	maxDuration = 7 * 24 * time.Hour
)

// units are what an item can be.
const (
	unitScreen     = "screen"
	unitController = "controller"
	unitBatch      = "batch"
)

// locks is what an item locks. A directory is spelled with a slash behind it.
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

// controller is whose part an item is: the screen posts/index and the batch posts/1
// are of posts. Everything else is its own.
func (it *Item) controller() string {
	if i := strings.LastIndexByte(it.Name, '/'); i > 0 && (it.Unit == unitScreen || it.Unit == unitBatch) {
		return it.Name[:i]
	}
	return it.Name
}

func (it *Item) phase() string {
	if it.Phase == "" {
		return sched.DefaultPhase
	}
	return it.Phase
}

// place is where somebody finds an item.
func (it *Item) place() string {
	if it.at == "" {
		return "item " + it.Name
	}
	return it.at
}

// refuse says what is wrong with a field of an item, and where.
func (it *Item) refuse(field, value, reason, next string) error {
	return &lockkeeper.InputError{Field: it.place() + ": " + field, Value: value, Reason: reason, Next: next}
}

// isRefused reports whether a key was found wrong already.
func (it *Item) isRefused(key string) bool { return slices.Contains(it.refused, key) }

// check refuses a plan that nobody could carry out, for all reasons at once.
func (p *Plan) check() error {
	switch n := len(p.Items); {
	case n == 0:
		return &lockkeeper.InputError{Field: "items", Reason: "the plan has none", Next: "list under items: what is to be done"}
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
			problems = append(problems, it.refuse("name", "", "missing", "give each item a name of its own"))
		case first != nil:
			problems = append(problems, it.refuse("name", it.Name, "used before, by "+first.place(), "give each item a name of its own"))
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
	if problems == nil { // with what they wait for known, and no two of one name
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
			return []error{it.refuse("after", strings.Join(append(path[i:], it.Name), " → "), "they wait for each other for ever", "take one of the dependencies away")}
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

// maxNameSize is that of the names in a queue.
const maxNameSize = 200

// unprintable reports whether a name could not be shown, or is longer than any should be.
func unprintable(name string) bool {
	return len(name) > maxNameSize || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// meant is the next step for somebody who typed an unknown name.
func meant(typed string, known []string, otherwise string) string {
	if near, ok := config.Nearest(typed, known); ok {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// check looks at what an item says of itself.
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
	if _, known := sched.RankOf(it.phase()); !known && !it.isRefused("phase") {
		bad("phase", it.Phase, "unknown phase", meant(it.Phase, strings.Split(sched.PhaseNames(), ", "), "use one of "+sched.PhaseNames()))
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

// directories are the paths of which the plan says that something lies below them.
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
			problems = append(problems, fmt.Errorf("%s: %w", it.place(), over))
		}
	}
	return problems
}
