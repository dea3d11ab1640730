package resource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
)

// told formats the nodes of a need in one line; + means everything below.
func told(n resource.Need) string {
	var parts []string
	for _, l := range n.Locks {
		if l.Level() == 0 {
			continue // the files of a node: TestFilesOfNodes
		}
		s := l.String()
		if l.Kind == lockkeeper.Tree {
			s += "+"
		}
		parts = append(parts, s)
	}
	if n.Approval {
		parts = append(parts, "approval")
	}
	return strings.Join(parts, ", ")
}

// Each operation needs the documented locks, at its thresholds too.
//
// shows: GP-28
func TestOperations(t *testing.T) {
	s := preset(t, "fole", "")
	const p, m, k = "project/p1", "project/p1/map/m1", "project/p1/map/m1/sketch/s1"
	project := resource.Args{Project: []string{"p1"}}
	onMap := resource.Args{Project: []string{"p1"}, Map: []string{"m1"}}
	sketch := resource.Args{Project: []string{"p1"}, Map: []string{"m1"}, Sketch: []string{"s1"}}
	sketches := resource.Args{Project: []string{"p1"}, Map: []string{"m1"}, Sketch: []string{"s1", "s2"}}
	of := func(a resource.Args, objects int) resource.Args {
		a.Objects = objects
		return a
	}
	seen := map[string]bool{}
	for _, c := range []struct {
		name string
		args resource.Args
		want string
		is   string // the operation for this number of objects, if another
	}{
		{"edit-project-metadata", project, "write " + p, ""},                                               // shows: DL-21
		{"recalculate-project", project, "write " + p + "+", ""},                                           // shows: DL-22
		{"change-permissions", project, "write " + p, ""},                                                  // shows: DL-23
		{"apply-template", project, "write " + p + "+", ""},                                                // shows: DL-24
		{"import-files", project, "write " + p + "+", ""},                                                  // shows: DL-25
		{"delete-project", project, "write " + p + "+, approval", ""},                                      // shows: DL-26
		{"view-project", project, "read " + p, ""},                                                         // shows: DL-27
		{"list-project", project, "read " + p, ""},                                                         // shows: DL-28
		{"query-project-db", project, "read " + p, ""},                                                     // shows: DL-29
		{"backup-project", project, "read " + p + "+", ""},                                                 // shows: GP-30
		{"restore-project", project, "write " + p + "+, approval", ""},                                     // shows: GP-30
		{"create-map", project, "write " + p, ""},                                                          // shows: GP-29
		{"calibrate-map", onMap, "read " + p + ", write " + m, ""},                                         // shows: DL-30
		{"generate-tiles", onMap, "read " + p + ", write " + m, ""},                                        // shows: DL-31
		{"import-floorplan", onMap, "read " + p + ", write " + m, ""},                                      // shows: DL-32
		{"change-map-objects", of(onMap, 1), "read " + p + ", write " + m, ""},                             // shows: GP-29
		{"change-map-objects", of(onMap, 1000), "read " + p + ", write " + m, ""},                          // shows: DL-33
		{"change-map-objects", of(onMap, 1001), "read " + p + ", write " + m + "+", "heavy-map-operation"}, // shows: DL-33
		{"heavy-map-operation", of(onMap, 1001), "read " + p + ", write " + m + "+", ""},                   // shows: DL-33
		{"delete-map", onMap, "read " + p + ", write " + m + "+", ""},                                      // shows: DL-34
		{"view-map", onMap, "read " + p + ", read " + m, ""},                                               // shows: DL-35
		{"export-map", onMap, "read " + p + ", read " + m + "+", ""},                                       // shows: DL-36
		{"render-map", onMap, "read " + p + ", read " + m, ""},                                             // shows: DL-37
		{"list-features", onMap, "read " + p + ", read " + m, ""},                                          // shows: DL-38
		{"create-sketch", sketch, "read " + p + ", write " + k, ""},                                        // shows: DL-39
		{"delete-sketch", sketch, "read " + p + ", write " + k, ""},                                        // shows: DL-39
		{"edit-sketch", of(sketch, 1), "read " + p + ", write " + k, ""},                                   // shows: DL-40
		{"edit-sketch", of(sketch, 100), "read " + p + ", write " + k, ""},                                 // shows: DL-41
		{"edit-sketch", of(sketch, 101), "read " + p + ", write " + k, "bulk-change-sketch"},               // shows: DL-41
		{"bulk-change-sketch", of(sketch, 101), "read " + p + ", write " + k, ""},                          // shows: DL-41
		{"edit-sketch", of(sketch, 1000), "read " + p + ", write " + k, "bulk-change-sketch"},              // shows: DL-33
		{"edit-sketch", of(sketch, 1001), "read " + p + ", write " + m + "+", "heavy-map-operation"},       // shows: DL-33
		{"reassign-features", sketches, "read " + p + ", write " + k + ", write " + m + "/sketch/s2", ""},  // shows: DL-42
		{"view-sketch", sketch, "read " + p + ", read " + k, ""},                                           // shows: DL-43
		{"measure-sketch", sketch, "read " + p + ", read " + k, ""},                                        // shows: DL-44
		{"read-sketch", sketch, "read " + p + ", read " + k, ""},                                           // shows: DL-45
	} {
		seen[c.name] = true
		is := c.is
		if is == "" {
			is = c.name
		}
		n, err := s.Operation(c.name, c.args)
		if err != nil || told(n) != c.want || n.Operation != is || n.Why == "" {
			t.Errorf("%s with %d objects: %s, %q of %s, %v; want %s of %s", c.name, c.args.Objects, told(n), n.Why, n.Operation, err, c.want, is)
		}
	}
	for _, op := range s.Operations() {
		if !seen[op.Name] {
			t.Errorf("%s is in the table but not tested", op.Name)
		}
		if op.About == "" || len(op.Needs) == 0 {
			t.Errorf("%+v is incomplete", op)
		}
	}
}

// The files of a node are locked with it, after all nodes; work on everything below a node
// locks the files of everything below it.
//
// shows: DL-46
func TestFilesOfNodes(t *testing.T) {
	s := preset(t, "fole", "")
	onMap := resource.Args{Project: []string{"p1"}, Map: []string{"m1"}}
	for _, c := range []struct {
		name string
		args resource.Args
		want string
	}{
		{"edit-project-metadata", onMap, ""}, // refused: it works on no map
		{"edit-project-metadata", resource.Args{Project: []string{"p1"}}, "write data/p1/project"},
		{"generate-tiles", onMap, "write data/p1/maps/m1, read data/p1/project"},
		{"delete-map", onMap, "write data/p1/maps/m1, read data/p1/project, write data/p1/sketches/m1"},
		{"view-sketch", resource.Args{Project: []string{"p1"}, Sketch: []string{"m1/s1"}}, "read data/p1/project, read data/p1/sketches/m1/s1"},
		{"import-files", resource.Args{Project: []string{"p1"}}, "write data/p1/maps, write data/p1/project, write data/p1/sketches"},
	} {
		n, err := s.Operation(c.name, c.args)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s %+v was accepted", c.name, c.args)
			}
			continue
		}
		var files []string
		for i, l := range n.Locks {
			if l.Level() > 0 {
				continue
			}
			files = append(files, l.String())
			if l.Kind != lockkeeper.Dir || i < len(n.Locks)-1 && n.Locks[i+1].Level() > 0 {
				t.Errorf("%s: %s is a %s, or before a node", c.name, l, l.Kind)
			}
		}
		if got := strings.Join(files, ", "); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", c.name, got, err, c.want)
		}
	}
}

// A node is named by its path; a slash at the end adds everything below it.
func TestNodeLocks(t *testing.T) {
	s := preset(t, "fole", "")
	for name, want := range map[string]string{
		"project/p1/map/m1":  "write project/p1/map/m1, write data/p1/maps/m1",
		"project/p1/map/m1/": "write project/p1/map/m1+, write data/p1/maps/m1, write data/p1/sketches/m1",
	} {
		locks, err := s.NodeLocks(name, lockkeeper.Write)
		var got []string
		for _, l := range locks {
			got = append(got, l.String()+map[bool]string{true: "+"}[l.Kind == lockkeeper.Tree])
		}
		if strings.Join(got, ", ") != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
	for _, name := range []string{"", "/", "p1", "map/m1", "project/p1/map", "project/p1/map/m 1", "data/p1/maps/m1", "project/p1//", "../project/p1"} {
		if locks, err := s.NodeLocks(name, lockkeeper.Write); lockkeeper.CodeOf(err) != lockkeeper.CodeInput || !strings.Contains(err.Error(), "project/{project}/map/{map}") {
			t.Errorf("%q: %v, %v", name, locks, err)
		}
	}
	book := preset(t, "book", "")
	for _, name := range []string{"Chapter_01", "project/p1"} {
		if _, err := book.NodeLocks(name, lockkeeper.Read); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s of a book: %v", name, err)
		}
	}
}

// The reason names the number of objects where it matters.
func TestWhyNamesTheThreshold(t *testing.T) {
	s := preset(t, "fole", "")
	args := resource.Args{Project: []string{"p1"}, Map: []string{"m1"}}
	for objects, want := range map[int]string{
		1000: "1000 objects; it takes 1000 at most",
		1001: "1001 objects are more than the 1000 of change-map-objects",
	} {
		args.Objects = objects
		n, err := s.Operation("change-map-objects", args)
		if err != nil || !strings.HasPrefix(n.Why, want) {
			t.Errorf("%d: %q, %v, want %q", objects, n.Why, err, want)
		}
	}
}

// Several nodes are returned in the global order, each under its own parent.
//
// shows: DL-69 DL-85 CF-5
func TestOperationsOnSeveral(t *testing.T) {
	s := preset(t, "fole", "")
	for _, c := range []struct {
		name string
		args resource.Args
		want string
	}{
		{"edit-project-metadata", resource.Args{Project: []string{"p2", "p1", "p2"}}, "write project/p1, write project/p2"},
		{"reassign-features", resource.Args{Project: []string{"p1"}, Map: []string{"m1"}, Sketch: []string{"s9", "s1"}},
			"read project/p1, write project/p1/map/m1/sketch/s1, write project/p1/map/m1/sketch/s9"},
		{"reassign-features", resource.Args{Project: []string{"p1"}, Sketch: []string{"m2/s1", "m1/s2"}},
			"read project/p1, write project/p1/map/m2/sketch/s1, write project/p1/map/m1/sketch/s2"},
		{"reassign-features", resource.Args{Sketch: []string{"p1/m1/s1", "p2/m1/s1"}},
			"read project/p1, read project/p2, write project/p1/map/m1/sketch/s1, write project/p2/map/m1/sketch/s1"},
		{"view-sketch", resource.Args{Project: []string{"p1"}, Map: []string{"m1", "p1/m1", "m1"}, Sketch: []string{"s1", "m1/s1"}},
			"read project/p1, read project/p1/map/m1/sketch/s1"},
		{"view-map", resource.Args{Project: []string{"p1", "p2"}, Map: []string{"p2/m1"}},
			"read project/p1, read project/p2, read project/p2/map/m1"},
		{"edit-sketch", resource.Args{Project: []string{"p1"}, Sketch: []string{"m1/s1", "m2/s1"}, Objects: 5000},
			"read project/p1, write project/p1/map/m1+, write project/p1/map/m2+"},
	} {
		n, err := s.Operation(c.name, c.args)
		if err != nil || told(n) != c.want {
			t.Errorf("%s %+v: %s, %v, want %s", c.name, c.args, told(n), err, c.want)
		}
		if err := lockkeeper.ValidateAll(n.Locks); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		nodes := slices.DeleteFunc(slices.Clone(n.Locks), func(l lockkeeper.Lock) bool { return l.Level() == 0 })
		if !slices.IsSortedFunc(nodes, func(a, b lockkeeper.Lock) int { return a.Compare(b.Target) }) {
			t.Errorf("%s: not in the global order: %s", c.name, told(n))
		}
	}
}

// The error lists everything that is unclear, and there are no locks.
//
// shows: DL-84 DL-92 DL-93 GP-29
func TestUnclearOperations(t *testing.T) {
	s := preset(t, "fole", "")
	ids := func(s string) []string { return strings.Fields(s) }
	for _, c := range []struct {
		name string
		args resource.Args
		want []string
	}{
		{"paint-map", resource.Args{Project: ids("p1")}, []string{"it is not in the table of operations"}},
		{"", resource.Args{}, []string{"it is not in the table of operations"}},
		{"calibrate-map", resource.Args{}, []string{"which project is meant", "which map is meant"}},
		{"calibrate-map", resource.Args{Project: ids("p1")}, []string{"which map is meant"}},
		{"view-sketch", resource.Args{Project: ids("p1"), Sketch: ids("s1")}, []string{"which map is meant"}},
		{"view-sketch", resource.Args{Project: ids("p1"), Map: ids("m1 m2"), Sketch: ids("s1")}, []string{`which of the 2 maps sketch "s1" is in`}},
		{"view-sketch", resource.Args{Project: ids("p1"), Sketch: ids("m1/s1 s2")}, []string{"which map is meant"}},
		{"view-map", resource.Args{Project: ids("p1 p2"), Map: ids("m1")}, []string{`which of the 2 projects map "m1" is in`}},
		{"calibrate-map", resource.Args{Project: ids("p1"), Map: ids("m1"), Sketch: ids("s1")}, []string{`how sketch "s1" is related: it works on project, map`}},
		{"edit-project-metadata", resource.Args{Project: ids("p1"), Map: ids("m1")}, []string{`how map "m1" is related`}},
		{"view-project", resource.Args{Project: ids("p1"), Of: ids("Chapter_05")}, []string{`how "Chapter_05" is related`}},
		{"change-map-objects", resource.Args{Project: ids("p1"), Map: ids("m1")}, []string{"how many objects it changes"}},
		{"reassign-features", resource.Args{Project: ids("p1"), Map: ids("m1"), Sketch: ids("s1")}, []string{"only project/p1/map/m1/sketch/s1 is named"}},
		{"reassign-features", resource.Args{Project: ids("p1"), Map: ids("m1"), Sketch: ids("s1 m1/s1")}, []string{"which other sketch it works on"}},
		{"reassign-features", resource.Args{Project: ids("p1"), Map: ids("m1")}, []string{"which sketch is meant"}},
		{"heavy-map-operation", resource.Args{Project: ids("p1"), Map: ids("m1"), Objects: 1000}, []string{"it needs 1001 objects or more, got 1000"}},
		{"bulk-change-sketch", resource.Args{Project: ids("p1"), Map: ids("m1"), Sketch: ids("s1"), Objects: 100}, []string{"it needs 101 objects or more, got 100"}},
	} {
		n, err := s.Operation(c.name, c.args)
		u := unclear(t, err)
		for i, want := range c.want {
			if len(u.Unclear) != len(c.want) || !strings.Contains(u.Unclear[i], want) {
				t.Errorf("%s %+v: unclear %q, want %q", c.name, c.args, u.Unclear, c.want)
			}
		}
		if len(n.Locks) > 0 || u.Next == "" || lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s: locks %s, next %q", c.name, told(n), u.Next)
		}
	}
	_, err := s.Operation("heavy-map-operation", resource.Args{Project: ids("p1"), Map: ids("m1"), Objects: 3})
	if u := unclear(t, err); u.Next != "lockkeeper op change-map-objects" {
		t.Errorf("next: %s", u.Next)
	}
}

// Ids that could form another path are refused.
func TestWrongIDs(t *testing.T) {
	s := preset(t, "fole", "")
	for _, id := range []string{"", "..", ".", "/", "a//b", "p1/", "/p1", "a b", "a\nb", "a\x00b", "{project}", "*", "cafe\u0301", "p1/m1/s1/x", "-p"} {
		_, err := s.Operation("view-sketch", resource.Args{Sketch: []string{id}, Map: []string{"m"}, Project: []string{"p"}})
		if lockkeeper.CodeOf(err) != lockkeeper.CodeInput || !strings.Contains(err.Error(), fmt.Sprintf("%q", id)) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := s.Operation("view-project", resource.Args{Project: []string{"p"}, Objects: -1}); err == nil || !strings.Contains(err.Error(), "negative") {
		t.Errorf("-1 objects: %v", err)
	}
}

// Nodes are resources that are named by their paths.
func TestNodesHaveNames(t *testing.T) {
	s := preset(t, "fole", "")
	r, err := s.Resolve("project/p1/map/m2")
	if err != nil || !r.Node || !slices.Equal(r.Paths, []string{"project/p1/map/m2"}) {
		t.Errorf("%+v, %v", r, err)
	}
	if got := s.Covering("project/p1/map/m2"); !slices.Equal(got, []string{"project/p1/map/m2"}) {
		t.Errorf("covered by %q", got)
	}
	if _, err := s.Resolve("map"); err == nil {
		t.Error("a level was resolved as a node")
	}
}
