package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project/config"
)

// Args are the arguments of an operation.
type Args struct {
	Project, Map, Sketch []string // ids; prefixed with the parent if that is ambiguous, as in m2/s1
	Objects              int      // number of objects that the operation changes; 0 if unknown
	Of                   []string // names of resources, also of nodes, or numbers of chapters, as for Prompt
}

// A Need is the locks and the approval that an operation needs before it starts.
type Need struct {
	Operation string            `json:"operation"` // name of the operation, which can differ from the requested one because of the number of objects
	Resources []string          `json:"resources"` // names of resources, in the global order
	Locks     []lockkeeper.Lock `json:"locks"`     // nodes in the global order, then files; paths as in the table
	Approval  bool              `json:"approval"`  // a person must approve
	Why       string            `json:"why"`
}

type operation struct {
	name   string
	config *config.Operation
	uses   []use
}

type use struct {
	row  *row
	mode lockkeeper.Mode
	all  bool // the lock includes everything below
	may  bool // the resource is optional
}

// A Listed is a row of the table of operations, for display.
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
		l := Listed{Name: name, About: op.config.About, Prompt: op.config.Prompt, Needs: []string{}, Objects: op.objects(), Approval: op.needsApproval()}
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

func (u use) verb() string {
	switch {
	case u.may:
		return "may " + u.mode.String()
	case u.all:
		return u.mode.String() + " all of"
	}
	return u.mode.String()
}

func (op *operation) needsApproval() bool { return op.config.Approval == config.ApprovalRequired }

// Operation returns the locks and approval that an operation needs. The error may be an
// *UnclearError.
func (s *Set) Operation(name string, a Args) (Need, error) {
	asked, err := s.find(name)
	if err != nil {
		return Need{}, err
	}
	a = s.withNodes(a)
	op, why, err := s.forSize(asked, a.Objects)
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
	slices.SortFunc(n.Locks, func(x, y lockkeeper.Lock) int {
		return cmp.Or(-cmp.Compare(min(1, x.Level()), min(1, y.Level())), x.Compare(y.Target))
	})
	var reasons []string
	for _, reason := range []string{why, op.config.About, op.config.Unlocked} {
		if reason != "" {
			reasons = append(reasons, strings.TrimSuffix(reason, "."))
		}
	}
	n.Why = strings.Join(reasons, "; ")
	return n, nil
}

// Prompt returns the resources that a prompt works on, in the global order. name is its
// number or its operation. The argument of selects resources where the table has a pattern or a choice:
// 5 or Chapter_05 for a chapter, BackMatter for an optional one. The error may be an
// *UnclearError.
func (s *Set) Prompt(name string, of ...string) ([]string, error) {
	op, err := s.find(name)
	if err != nil {
		return nil, err
	}
	bound, err := op.bind(Args{Of: of}, op)
	return namesOf(bound), err
}

// find returns an operation by its name or by the number of its prompt.
func (s *Set) find(name string) (*operation, error) {
	if op := s.operations[name]; op != nil {
		return op, nil
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 {
		for _, listed := range s.listed {
			if op := s.operations[listed]; op.config.Prompt == n {
				return op, nil
			}
		}
	}
	e := &UnclearError{Operation: name, Unclear: []string{"which locks it needs: it is not in the table of operations of " + config.FileName}}
	switch near, ok := config.Nearest(name, s.listed); {
	case len(s.listed) == 0:
		e.Next = "run lockkeeper init book or lockkeeper init fole, or add it under operations"
	case ok:
		e.Next = "did you mean " + near + "?"
	default:
		e.Next = "list them with lockkeeper op, or add it to the table"
	}
	return nil, e
}

// forSize returns the operation for a number of objects, and why it differs from op.
func (s *Set) forSize(op *operation, objects int) (is *operation, why string, err error) {
	if objects < 0 {
		return nil, "", &lockkeeper.InputError{Field: "objects", Value: strconv.Itoa(objects), Reason: "negative", Next: "set the number of objects it changes"}
	}
	for {
		least, most := op.config.MinObjects, op.config.MaxObjects
		switch {
		case least == 0 && most == 0:
			return op, why, nil
		case objects == 0:
			return nil, "", op.unclear("how many objects it changes: its locks depend on that", "set --objects")
		case objects < least:
			return nil, "", op.unclear(fmt.Sprintf("which operation is meant: it needs %d objects or more, got %d", least, objects), s.smaller(op))
		case most == 0 || objects <= most:
			return op, cmp.Or(why, fmt.Sprintf("%d objects; it takes %s", objects, op.objects())), nil
		case op.config.Beyond == "":
			return nil, "", op.unclear(fmt.Sprintf("which operation is meant: it takes %d objects at most, got %d", most, objects), "lockkeeper op lists the operations")
		}
		why = fmt.Sprintf("%d objects are more than the %d of %s", objects, most, op.name)
		op = s.operations[op.config.Beyond]
	}
}

// objects returns how many objects an operation takes, or "" if there is no limit.
func (op *operation) objects() string {
	switch least, most := op.config.MinObjects, op.config.MaxObjects; {
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

// smaller names the operation that becomes this one with more objects.
func (s *Set) smaller(op *operation) string {
	for _, name := range s.listed {
		if s.operations[name].config.Beyond == op.name {
			return "lockkeeper op " + name
		}
	}
	return "lockkeeper op lists the operations"
}

func (op *operation) unclear(what, next string) error {
	return &UnclearError{Operation: op.name, Unclear: []string{what}, Next: next}
}

// A bound is a resolved resource that an operation needs.
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

// bind resolves the resources that an operation needs, in the global order. The error
// lists everything that is unclear. asked is the operation that the caller named.
func (op *operation) bind(a Args, asked *operation) ([]bound, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	e := &UnclearError{Operation: op.name}
	chosen := op.choose(a.Of, e)
	var list []bound
	for _, u := range op.uses {
		found := op.resources(u, a, chosen, e)
		if len(found) == 1 && slices.Contains(op.config.Several, u.row.name) {
			e.add("which other "+u.row.name+" it works on: only "+found[0].Name+" is named", u.nameAll())
		}
		for _, r := range found {
			list = append(list, bound{r, u})
		}
	}
	asked.checkScope(a, e)
	if len(list) == 0 && len(op.uses) > 0 && len(e.Unclear) == 0 {
		e.add("which of "+op.resourceNames()+" it writes", "name them with --of")
	}
	if len(e.Unclear) > 0 {
		return nil, e
	}
	slices.SortStableFunc(list, func(x, y bound) int { return x.compare(y.Resource) })
	return list, nil
}

func (op *operation) resources(u use, a Args, chosen map[*row][]Resource, e *UnclearError) []Resource {
	if u.row.node {
		return a.nodes(u.row, e)
	}
	of := chosen[u.row]
	if len(u.row.template.placeholders) == 0 && !u.may {
		of = []Resource{u.row.resource(nil)}
	}
	if len(of) == 0 && !u.may {
		e.add("which "+u.row.name+" it works on", "name them with --of, for example "+u.row.example())
	}
	return of
}

// nameAll returns the next step for naming several resources of a row.
func (u use) nameAll() string {
	flag := "--of"
	if u.row.node {
		flag = "--" + u.row.template.placeholders[len(u.row.template.placeholders)-1]
	}
	return "name all of them, each with " + flag
}

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
			e.add("how "+strconv.Quote(name)+" is related: it works on "+op.resourceNames(), "name one of these")
			continue
		}
		if r := found.resource(values); !slices.ContainsFunc(chosen[found], func(o Resource) bool { return o.Name == r.Name }) {
			chosen[found] = append(chosen[found], r)
		}
	}
	return chosen
}

// named returns the placeholder values of a name. A number alone fills {nn}.
func (r *row) named(name string) (map[string]string, bool) {
	if nn, ok := padded(name); ok && slices.Equal(r.template.placeholders, []string{number}) {
		return map[string]string{number: nn}, true
	}
	return r.template.match(name)
}

func (r *row) example() string {
	values := map[string]string{}
	for _, h := range r.template.placeholders {
		values[h] = map[bool]string{true: "05", false: "a"}[h == number]
	}
	return r.template.fill(values)
}

// resourceNames lists the resources of an operation as in the table.
func (op *operation) resourceNames() string {
	var names []string
	for _, u := range op.uses {
		if !slices.Contains(names, u.row.name) {
			names = append(names, u.row.name)
		}
	}
	if len(names) == 0 {
		return "no resources"
	}
	return strings.Join(names, ", ")
}

// An UnclearError refuses an incomplete or ambiguous operation. No lock was acquired.
type UnclearError struct {
	Operation string
	Unclear   []string // what is unclear; never empty
	Next      string
}

func (e *UnclearError) Error() string {
	return lockkeeper.JoinNext(fmt.Sprintf("operation %q: unclear %s; no lock was acquired", e.Operation, strings.Join(e.Unclear, ", and ")), e.Next)
}

func (e *UnclearError) NextStep() string { return e.Next }

func (e *UnclearError) Code() lockkeeper.Code { return lockkeeper.CodeInput }

// add adds something that is unclear. The error keeps the next step of the first addition.
func (e *UnclearError) add(what, next string) {
	if !slices.Contains(e.Unclear, what) {
		e.Unclear = append(e.Unclear, what)
	}
	if e.Next == "" {
		e.Next = next
	}
}
