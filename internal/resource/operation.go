package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/config"
)

// Args says what an operation is to work on.
type Args struct {
	Project, Map, Sketch []string // ids; where its parent could be one of several, as in m2/s1
	Objects              int      // how many objects it changes; 0: not said
	Of                   []string // names of resources, or numbers of chapters, as for Prompt
}

// Need is what an operation needs before it may begin.
type Need struct {
	Operation string            `json:"operation"` // as in the table; another than was asked for, where the number of objects makes it one
	Resources []string          `json:"resources"` // in the global order
	Locks     []lockkeeper.Lock `json:"locks"`     // in the global order; files and directories as they are written in the table
	Approval  bool              `json:"approval"`  // a person has to agree
	Why       string            `json:"why"`
}

// operation is a checked row of the table.
type operation struct {
	name  string
	about *config.Operation
	uses  []use
}

// use is one resource that an operation needs.
type use struct {
	row  *row
	mode lockkeeper.Mode
	all  bool // with everything below
	may  bool // in some cases
}

// Listed is a row of the table of operations, for people.
type Listed struct {
	Name     string   `json:"name"`
	About    string   `json:"about"`
	Prompt   int      `json:"prompt,omitempty"`
	Needs    []string `json:"needs"` // "read project", "write all of map", "may write FrontMatter, BackMatter"
	Objects  string   `json:"objects,omitempty"`
	Approval bool     `json:"approval,omitempty"`
}

// Operations lists the table of operations, in its order.
func (s *Set) Operations() []Listed {
	list := []Listed{}
	for _, name := range s.listed {
		op := s.operations[name]
		l := Listed{Name: name, About: op.about.About, Prompt: op.about.Prompt, Needs: []string{}, Objects: op.objects(), Approval: op.needsApproval()}
		for i, u := range op.uses {
			if i > 0 && u.verb() == op.uses[i-1].verb() {
				l.Needs[len(l.Needs)-1] += ", " + u.row.name
				continue
			}
			l.Needs = append(l.Needs, u.verb()+" "+u.row.name)
		}
		list = append(list, l)
	}
	return list
}

// verb is what an operation does with a resource.
func (u use) verb() string {
	switch {
	case u.may:
		return "may " + u.mode.String()
	case u.all:
		return u.mode.String() + " all of"
	}
	return u.mode.String()
}

func (op *operation) needsApproval() bool { return op.about.Approval == config.ApprovalRequired }

// Operation says what an operation needs. The error may be an *UnclearError.
func (s *Set) Operation(name string, a Args) (Need, error) {
	asked, err := s.find(name)
	if err != nil {
		return Need{}, err
	}
	op, why, err := s.sized(asked, a.Objects)
	if err != nil {
		return Need{}, err
	}
	bound, err := op.bind(a, asked)
	if err != nil {
		return Need{}, err
	}
	n := Need{Operation: op.name, Resources: namesOf(bound), Locks: []lockkeeper.Lock{}, Approval: op.needsApproval()}
	for _, b := range bound {
		n.Locks = append(n.Locks, b.Locks(b.use.mode, b.use.all)...)
	}
	n.Locks = lockkeeper.Normalize(n.Locks)
	slices.SortFunc(n.Locks, func(x, y lockkeeper.Lock) int { return x.Compare(y.Target) })
	var reasons []string
	for _, reason := range []string{why, op.about.About, op.about.Unlocked} {
		if reason != "" {
			reasons = append(reasons, strings.TrimSuffix(reason, "."))
		}
	}
	n.Why = strings.Join(reasons, "; ")
	return n, nil
}

// Prompt lists the names of the resources that a prompt works on, in the global
// order. The prompt is given by its number or by the name of its operation; of says
// which ones where the table has a pattern or leaves a choice: 5 or Chapter_05 for a
// chapter, BackMatter for what it may write. The error may be an *UnclearError.
func (s *Set) Prompt(name string, of ...string) ([]string, error) {
	op, err := s.find(name)
	if err != nil {
		return nil, err
	}
	bound, err := op.bind(Args{Of: of}, op)
	return namesOf(bound), err
}

// find looks an operation up by its name or by the number of its prompt.
func (s *Set) find(name string) (*operation, error) {
	if op := s.operations[name]; op != nil {
		return op, nil
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 {
		for _, listed := range s.listed {
			if op := s.operations[listed]; op.about.Prompt == n {
				return op, nil
			}
		}
	}
	e := &UnclearError{Operation: name, Unclear: []string{"which locks it needs: it is not in the table of operations of " + config.FileName}}
	switch near, ok := config.Nearest(name, s.listed); {
	case len(s.listed) == 0:
		e.Next = "lockkeeper init book or lockkeeper init fole write a table, or name it yourself, under operations"
	case ok:
		e.Next = "did you mean " + near + "?"
	default:
		e.Next = "lockkeeper op lists them; add it there when it is clear"
	}
	return nil, e
}

// sized finds the operation that this one is with so many objects, and says why.
func (s *Set) sized(op *operation, objects int) (is *operation, why string, err error) {
	if objects < 0 {
		return nil, "", &lockkeeper.InputError{Field: "objects", Value: strconv.Itoa(objects), Reason: "less than none", Next: "say how many objects it changes"}
	}
	for {
		least, most := op.about.MinObjects, op.about.MaxObjects
		switch {
		case least == 0 && most == 0:
			return op, why, nil
		case objects == 0:
			return nil, "", op.unclear("how many objects it changes, on which its locks depend", "say it with --objects")
		case objects < least:
			return nil, "", op.unclear(fmt.Sprintf("what it is: it is for %d objects or more, and %d were named", least, objects), s.smaller(op))
		case most == 0 || objects <= most:
			return op, cmp.Or(why, fmt.Sprintf("%d objects, and it is for %s", objects, op.objects())), nil
		case op.about.Beyond == "":
			return nil, "", op.unclear(fmt.Sprintf("what it is: it is for %d objects at most, and %d were named", most, objects), "lockkeeper op lists the operations")
		}
		why = fmt.Sprintf("%d objects are more than the %d of %s", objects, most, op.name)
		op = s.operations[op.about.Beyond]
	}
}

// objects says how many objects an operation is for; empty: however many.
func (op *operation) objects() string {
	switch least, most := op.about.MinObjects, op.about.MaxObjects; {
	case least == 0 && most == 0:
		return ""
	case most == 0:
		return fmt.Sprintf("%d or more", least)
	case least == 0:
		return fmt.Sprintf("%d at most", most)
	default:
		return fmt.Sprintf("%d to %d", least, most)
	}
}

// smaller names the operations that become this one with more objects.
func (s *Set) smaller(op *operation) string {
	for _, name := range s.listed {
		if s.operations[name].about.Beyond == op.name {
			return "lockkeeper op " + name
		}
	}
	return "lockkeeper op lists the operations"
}

func (op *operation) unclear(what, next string) error {
	return &UnclearError{Operation: op.name, Unclear: []string{what}, Next: next}
}

// bound is a resource that an operation needs, found.
type bound struct {
	Resource
	use use
}

func namesOf(list []bound) []string {
	names := []string{}
	for _, b := range list {
		if !slices.Contains(names, b.Name) {
			names = append(names, b.Name)
		}
	}
	return names
}

// bind finds the resources that an operation needs, in the global order. All that is
// unclear is said at once. asked is the operation that the arguments were given for.
func (op *operation) bind(a Args, asked *operation) ([]bound, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	e := &UnclearError{Operation: op.name}
	chosen := op.choose(a.Of, e)
	var list []bound
	for _, u := range op.uses {
		found := op.resources(u, a, chosen, e)
		if len(found) == 1 && slices.Contains(op.about.Several, u.row.name) {
			e.add("between which "+u.row.name+" and which other it works: only "+found[0].Name+" is named", u.nameAll())
		}
		for _, r := range found {
			list = append(list, bound{r, u})
		}
	}
	asked.checkScope(a, e)
	if len(list) == 0 && len(op.uses) > 0 && len(e.Unclear) == 0 {
		e.add("which of "+op.works()+" it writes", "name them; op takes names with --of")
	}
	if len(e.Unclear) > 0 {
		return nil, e
	}
	slices.SortStableFunc(list, func(x, y bound) int { return x.compare(y.Resource) })
	return list, nil
}

// resources finds those of one row that an operation needs.
func (op *operation) resources(u use, a Args, chosen map[*row][]Resource, e *UnclearError) []Resource {
	if u.row.node {
		return a.nodes(u.row, e)
	}
	of := chosen[u.row]
	if len(u.row.known.holes) == 0 && !u.may {
		of = []Resource{u.row.resource(nil)}
	}
	if len(of) == 0 && !u.may {
		e.add("which "+u.row.name+" it works on", "name them, such as "+u.row.example()+"; op takes names with --of")
	}
	return of
}

// nameAll is how all of several resources of a row are named.
func (u use) nameAll() string {
	flag := "--of"
	if u.row.node {
		flag = "--" + u.row.known.holes[len(u.row.known.holes)-1]
	}
	return "name all of them, each with " + flag
}

// choose finds which of the operation's resources are meant.
func (op *operation) choose(of []string, e *UnclearError) map[*row][]Resource {
	chosen := map[*row][]Resource{}
	for _, name := range of {
		var found *row
		var values map[string]string
		for _, u := range op.uses {
			if v, ok := u.row.named(name); ok && !u.row.node {
				if found != nil && found != u.row {
					e.add(fmt.Sprintf("whether %s is a %s or a %s", name, found.name, u.row.name), "write the name in full")
				}
				found, values = u.row, v
			}
		}
		if found == nil {
			e.add("what "+strconv.Quote(name)+" is to it: it works on "+op.works(), "name one of these")
			continue
		}
		if r := found.resource(values); !slices.ContainsFunc(chosen[found], func(o Resource) bool { return o.Name == r.Name }) {
			chosen[found] = append(chosen[found], r)
		}
	}
	return chosen
}

// named finds the values with which a row has a name; a number alone is the name's.
func (r *row) named(name string) (map[string]string, bool) {
	if nn, ok := padded(name); ok && slices.Equal(r.known.holes, []string{number}) {
		return map[string]string{number: nn}, true
	}
	return r.known.match(name)
}

// example is a name of one of the row's resources.
func (r *row) example() string {
	values := map[string]string{}
	for _, h := range r.known.holes {
		values[h] = map[bool]string{true: "05", false: "a"}[h == number]
	}
	return r.known.fill(values)
}

// works names the resources of an operation as the table does.
func (op *operation) works() string {
	var names []string
	for _, u := range op.uses {
		if !slices.Contains(names, u.row.name) {
			names = append(names, u.row.name)
		}
	}
	if len(names) == 0 {
		return "nothing that is locked"
	}
	return strings.Join(names, ", ")
}
