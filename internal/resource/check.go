package resource

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/config"
)

// Of checks the tables of c as a whole. The error is one or several
// *lockkeeper.InputError, joined, each with its place in the file.
func Of(c *config.Config) (*Set, error) {
	k := &checker{config: c, set: &Set{rows: map[string]*row{}, operations: map[string]*operation{}}}
	for _, name := range c.Resources.Names() {
		k.resource(name, c.Resources.Row(name))
	}
	for _, name := range c.Operations.Names() {
		k.operation(name, c.Operations.Row(name))
	}
	for _, name := range c.Operations.Names() { // once all of them are known
		k.size(name, c.Operations.Row(name))
	}
	if len(k.problems) > 0 {
		return nil, errors.Join(k.problems...)
	}
	return k.set, nil
}

// checker fills a Set and gathers what is wrong with its tables.
type checker struct {
	config   *config.Config
	set      *Set
	problems []error
}

// refuse names a key, or an entry of its list, with its place.
func (k *checker) refuse(key string, entry []int, value, reason, next string) {
	k.problems = append(k.problems, &lockkeeper.InputError{Field: k.config.Place(key, entry...) + ": " + key, Value: value, Reason: reason, Next: next})
}

func (k *checker) resource(name string, c *config.Resource) {
	key := "resources." + name
	r := &row{name: name, mode: modeOf(c), node: c.Node != ""}
	switch {
	case r.node && len(c.Files) > 0:
		k.refuse(key, nil, name, "has files and a node", "keep one of the two")
		return
	case r.node:
		k.node(key, r, c)
	case len(c.Files) == 0:
		k.refuse(key, nil, name, "covers nothing", "say what, under files or node")
		return
	default:
		k.files(key, r, c)
	}
	if r.known == nil {
		return
	}
	for _, other := range k.set.names {
		o := k.set.rows[other]
		_, ours := r.known.match(o.example())
		_, theirs := o.known.match(r.example())
		if ours || theirs {
			k.refuse(key, nil, name, "could be the name of what "+other+" stands for as well", "give one of them another name")
			return
		}
	}
	k.set.names, k.set.rows[name] = append(k.set.names, name), r
}

// node reads the path of a node, whose levels stand in their order.
func (k *checker) node(key string, r *row, c *config.Resource) {
	known, err := templateOf(c.Node, "")
	switch {
	case err != nil:
		k.refuse(key+".node", nil, c.Node, err.Error(), "")
	case len(known.at) > len(levels) || !slices.Equal(known.at, levels[:len(known.at)]):
		k.refuse(key+".node", nil, c.Node, "its placeholders are not {project}, {map} and {sketch}, in this order", "write it as project/{project}/map/{map}/sketch/{sketch}, or a beginning of that")
	case strings.Contains(r.name, "{"):
		k.refuse(key, nil, r.name, "a placeholder in the name of a node, which is named by its path", "leave it out")
	default:
		r.known = known
	}
}

// files reads what a resource of files covers. Each file of a pattern holds all its
// placeholders: otherwise two resources of it would be the same file.
func (k *checker) files(key string, r *row, c *config.Resource) {
	known, err := templateOf(r.name, "")
	if err != nil {
		k.refuse(key, nil, r.name, err.Error(), "")
		return
	}
	before := len(k.problems)
	for i, text := range c.Files {
		f, err := templateOf(text, below)
		if err != nil {
			k.refuse(key+".files", []int{i}, text, err.Error(), "")
			continue
		}
		if !sameSet(f.holes, known.holes) {
			k.refuse(key+".files", []int{i}, text, "does not hold the placeholders of the name "+r.name, "a file that all of them share is a resource of its own")
		}
		r.files = append(r.files, f)
	}
	if len(k.problems) == before {
		r.known = known
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func (k *checker) operation(name string, c *config.Operation) {
	key := "operations." + name
	op := &operation{name: name, about: c}
	for _, list := range []struct {
		key   string
		names []string
		use   use
	}{
		{"read", c.Read, use{mode: lockkeeper.Read}},
		{"write", c.Write, use{mode: lockkeeper.Write}},
		{"read_all", c.ReadAll, use{mode: lockkeeper.Read, all: true}},
		{"write_all", c.WriteAll, use{mode: lockkeeper.Write, all: true}},
		{"may_write", c.MayWrite, use{mode: lockkeeper.Write, may: true}},
	} {
		for i, resource := range list.names {
			at := key + "." + list.key
			r := k.set.rows[resource]
			switch {
			case r == nil && k.config.Resources.Row(resource) != nil: // refused itself
			case r == nil:
				k.refuse(at, []int{i}, resource, k.set.unknown(), k.set.nearest(resource))
			case list.use.all && !r.node:
				k.refuse(at, []int{i}, resource, "covers files, and has nothing below", "name it under read or write")
			case list.use.may && r.node:
				k.refuse(at, []int{i}, resource, "a node, which an operation needs or does not", "make two operations of it")
			default:
				u := list.use
				u.row = r
				op.uses = append(op.uses, u)
			}
		}
	}
	k.several(key, op)
	locks := len(c.Read) + len(c.Write) + len(c.ReadAll) + len(c.WriteAll) + len(c.MayWrite)
	switch {
	case locks == 0 && c.Unlocked == "":
		k.refuse(key, nil, name, "names no resource", "name what it reads and writes, or say under unlocked why it needs no lock")
	case locks > 0 && c.Unlocked != "":
		k.refuse(key+".unlocked", nil, c.Unlocked, "stands beside resources that it needs locks for", "keep one of the two")
	}
	for _, other := range k.set.listed {
		if n := k.set.operations[other].about.Prompt; n != 0 && n == c.Prompt {
			k.refuse(key+".prompt", nil, strconv.Itoa(n), "is the prompt "+other+" already", "give it another number")
		}
	}
	k.set.listed, k.set.operations[name] = append(k.set.listed, name), op
}

// several checks the resources of which two or more are needed.
func (k *checker) several(key string, op *operation) {
	for i, name := range op.about.Several {
		at := slices.IndexFunc(op.uses, func(u use) bool { return u.row.name == name && !u.may })
		switch {
		case at < 0:
			k.refuse(key+".several", []int{i}, name, "not a resource that it needs", "name it under read or write, too")
		case len(op.uses[at].row.known.holes) == 0:
			k.refuse(key+".several", []int{i}, name, "there is only one of it", "leave it out")
		}
	}
}

// size checks the numbers of objects: what comes beyond an operation begins where it
// ends, and goes further, so that asking ends.
func (k *checker) size(name string, c *config.Operation) {
	key := "operations." + name
	if most := key + ".max_objects"; c.MaxObjects == 0 && k.config.Place(most) != k.config.Place(key) { // it is written there
		k.refuse(most, nil, "0", "it would be for no object at all", "say how many, or leave it out where there is no limit")
	}
	if c.MaxObjects > 0 && c.MinObjects > c.MaxObjects {
		k.refuse(key+".min_objects", nil, strconv.Itoa(c.MinObjects), fmt.Sprintf("more than max_objects, %d", c.MaxObjects), "")
	}
	if c.Beyond == "" {
		return
	}
	next := k.config.Operations.Row(c.Beyond)
	at := key + ".beyond"
	switch {
	case next == nil:
		near := "use one of " + strings.Join(k.set.listed, ", ")
		if n, ok := config.Nearest(c.Beyond, k.set.listed); ok {
			near = "did you mean " + n + "?"
		}
		k.refuse(at, nil, c.Beyond, "not an operation of the table", near)
	case c.MaxObjects == 0:
		k.refuse(at, nil, c.Beyond, "without max_objects it never comes to that", "set max_objects")
	case next.MinObjects > c.MaxObjects+1:
		k.refuse(at, nil, c.Beyond, fmt.Sprintf("begins at %d objects, and this one ends at %d", next.MinObjects, c.MaxObjects), "leave no number between them")
	case next.MaxObjects > 0 && next.MaxObjects <= c.MaxObjects:
		k.refuse(at, nil, c.Beyond, fmt.Sprintf("ends at %d objects, not beyond the %d of this one", next.MaxObjects, c.MaxObjects), "")
	}
}
