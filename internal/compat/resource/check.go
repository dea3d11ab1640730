package resource

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project/config"
)

// Of checks the tables of c. The error joins one *lockkeeper.InputError per problem, each
// with its position in the file.
func Of(c *config.Config) (*Set, error) {
	k := &checker{config: c, set: &Set{rows: map[string]*row{}, operations: map[string]*operation{}}}
	for _, name := range c.Resources.Names() {
		k.resource(name, c.Resources.Row(name))
	}
	for _, name := range c.Operations.Names() {
		k.operation(name, c.Operations.Row(name))
	}
	for _, name := range c.Operations.Names() { // runs after all operations are known
		k.size(name, c.Operations.Row(name))
	}
	k.below()
	if len(k.problems) > 0 {
		return nil, errors.Join(k.problems...)
	}
	return k.set, nil
}

// A checker builds a Set and collects the problems of its tables.
type checker struct {
	config   *config.Config
	set      *Set
	problems []error
}

// problem adds a problem with a key, or an item of its list, with its position.
func (k *checker) problem(key string, item []int, value, reason, next string) {
	k.problems = append(k.problems, &lockkeeper.InputError{Field: k.config.Place(key, item...) + ": " + key, Value: value, Reason: reason, Next: next})
}

func (k *checker) resource(name string, c *config.Resource) {
	key := "resources." + name
	r := &row{name: name, mode: modeOf(c), node: c.Node != ""}
	switch {
	case r.node:
		k.node(key, r, c)
	case len(c.Files) == 0:
		k.problem(key, nil, name, "covers nothing", "set files or node")
		return
	default:
		k.files(key, r, c)
	}
	if r.template == nil {
		return
	}
	for _, other := range k.set.names {
		o := k.set.rows[other]
		_, ours := r.template.match(o.example())
		_, theirs := o.template.match(r.example())
		if ours || theirs {
			k.problem(key, nil, name, "ambiguous: "+other+" matches the same name", "rename one of them")
			return
		}
	}
	k.set.names, k.set.rows[name] = append(k.set.names, name), r
}

// node checks the path of a node, whose levels must be in order.
func (k *checker) node(key string, r *row, c *config.Resource) {
	known, err := templateOf(c.Node, "")
	switch {
	case err != nil:
		k.problem(key+".node", nil, c.Node, err.Error(), "")
	case len(known.occurrences) > len(levels) || !slices.Equal(known.occurrences, levels[:len(known.occurrences)]):
		k.problem(key+".node", nil, c.Node, "its placeholders are not {project}, {map} and {sketch}, in this order", "use project/{project}/map/{map}/sketch/{sketch}, or the beginning of it")
	case strings.Contains(r.name, "{"):
		k.problem(key, nil, r.name, "the name of a node has no placeholder: a node is named by its path", "leave it out")
	default:
		k.fileList(key, r, c, known)
	}
}

// below finds the nodes below each node.
func (k *checker) below() {
	for _, name := range k.set.names {
		for _, other := range k.set.names {
			r, o := k.set.rows[name], k.set.rows[other]
			if r.node && o.node && lockkeeper.IsAncestor(r.template.text, o.template.text) {
				r.below = append(r.below, o)
			}
		}
	}
}

// files checks the files of a resource without a node.
func (k *checker) files(key string, r *row, c *config.Resource) {
	known, err := templateOf(r.name, "")
	if err != nil {
		k.problem(key, nil, r.name, err.Error(), "")
		return
	}
	k.fileList(key, r, c, known)
}

// fileList checks the files of a resource. Each file must contain all placeholders of the
// name, or of the node. Otherwise two resources would have the same file.
func (k *checker) fileList(key string, r *row, c *config.Resource, known *template) {
	before := len(k.problems)
	for i, text := range c.Files {
		f, err := templateOf(text, below)
		if err != nil {
			k.problem(key+".files", []int{i}, text, err.Error(), "")
			continue
		}
		if !slices.Equal(slices.Sorted(slices.Values(f.placeholders)), slices.Sorted(slices.Values(known.placeholders))) {
			k.problem(key+".files", []int{i}, text, "does not contain the placeholders of "+known.text, "make a shared file a separate resource")
		}
		r.files = append(r.files, f)
	}
	if len(k.problems) == before {
		r.template = known
	}
}

func (k *checker) operation(name string, c *config.Operation) {
	key := "operations." + name
	op := &operation{name: name, config: c}
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
			case r == nil && k.config.Resources.Row(resource) != nil: // the row of the resource is already reported as a problem
			case r == nil:
				k.problem(at, []int{i}, resource, k.set.unknown(), k.set.nearest(resource))
			case list.use.all && !r.node:
				k.problem(at, []int{i}, resource, "covers files, and only a node has nodes below it", "name it under read or write")
			case list.use.may && r.node:
				k.problem(at, []int{i}, resource, "a node cannot be optional", "make two operations")
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
		k.problem(key, nil, name, "names no resource", "name what it reads and writes, or set unlocked to why it needs no lock")
	case locks > 0 && c.Unlocked != "":
		k.problem(key+".unlocked", nil, c.Unlocked, "conflicts with the resources it locks", "keep one of the two")
	}
	for _, other := range k.set.listed {
		if n := k.set.operations[other].config.Prompt; n != 0 && n == c.Prompt {
			k.problem(key+".prompt", nil, strconv.Itoa(n), "already the prompt of "+other, "use another number")
		}
	}
	k.set.listed, k.set.operations[name] = append(k.set.listed, name), op
}

// several checks the resources that an operation needs two or more of.
func (k *checker) several(key string, op *operation) {
	for i, name := range op.config.Several {
		at := slices.IndexFunc(op.uses, func(u use) bool { return u.row.name == name && !u.may })
		switch {
		case at < 0:
			k.problem(key+".several", []int{i}, name, "not a resource of this operation", "name it under read or write, too")
		case len(op.uses[at].row.template.placeholders) == 0:
			k.problem(key+".several", []int{i}, name, "there is only one such resource", "remove it")
		}
	}
}

// size checks the object counts. The operation beyond another must start where the first
// ends and go further, so that forSize terminates.
func (k *checker) size(name string, c *config.Operation) {
	key := "operations." + name
	if most := key + ".max_objects"; c.MaxObjects == 0 && k.config.Place(most) != k.config.Place(key) { // the configuration sets this limit explicitly
		k.problem(most, nil, "0", "an operation needs at least one object", "set a number, or remove it if there is no limit")
	}
	if c.MaxObjects > 0 && c.MinObjects > c.MaxObjects {
		k.problem(key+".min_objects", nil, strconv.Itoa(c.MinObjects), fmt.Sprintf("more than max_objects, %d", c.MaxObjects), "")
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
		k.problem(at, nil, c.Beyond, "not an operation of the table", near)
	case c.MaxObjects == 0:
		k.problem(at, nil, c.Beyond, "never used without max_objects", "set max_objects")
	case next.MinObjects > c.MaxObjects+1:
		k.problem(at, nil, c.Beyond, fmt.Sprintf("starts at %d objects, but this operation ends at %d", next.MinObjects, c.MaxObjects), "leave no number between them")
	case next.MaxObjects > 0 && next.MaxObjects <= c.MaxObjects:
		k.problem(at, nil, c.Beyond, fmt.Sprintf("ends at %d objects, so it is not larger than this operation, which ends at %d", next.MaxObjects, c.MaxObjects), "")
	}
}
