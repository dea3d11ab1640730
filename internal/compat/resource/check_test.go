package resource_test

import (
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/project/config"
)

// An ambiguous or incomplete table is refused with the position in the file.
//
// shows: DL-87 DL-92 CF-41
func TestBadTables(t *testing.T) {
	const good = "resources:\n  A: {files: [a]}\n  map: {node: 'project/{project}/map/{map}'}\n  project: {node: 'project/{project}'}\noperations:\n"
	for _, c := range []struct{ text, place, want string }{
		{"resources:\n  A:\n", "2:3: resources.A", "covers nothing"},
		{"resources:\n  A: {files: [a], node: 'project/{project}'}\n", "2:15: resources.A.files", "does not contain the placeholders of project/{project}"},
		{"resources:\n  A: {files: ['a{nn}']}\n", "2:15: resources.A.files", "does not contain the placeholders of A"},
		{"resources:\n  A_{nn}: {files: ['a{nn}', a]}\n", "2:29: resources.A_{nn}.files", "does not contain the placeholders of A"},
		{"resources:\n  A_{nn: {files: [a]}\n", "2:3: resources.A_{nn", "a brace that is not part of a placeholder"},
		{"resources:\n  A: {files: ['a{']}\n", "2:15: resources.A.files", "a brace that is not part of a placeholder"},
		{"resources:\n  A_{nn}: {files: ['a{nn}']}\n  A_07: {files: [b]}\n", "3:3: resources.A_07", "ambiguous: A_{nn} matches the same name"},
		{"resources:\n  A_{x}: {files: ['a{x}']}\n  A_{y}: {files: ['b{y}']}\n", "3:3: resources.A_{y}", "ambiguous: A_{x} matches"},
		{"resources:\n  map: {node: 'map/{map}'}\n", "2:15: resources.map.node", "in this order"},
		{"resources:\n  map: {node: 'project/{project}/room/{room}'}\n", "2:15: resources.map.node", "in this order"},
		{"resources:\n  m_{map}: {node: 'project/{project}'}\n", "2:3: resources.m_{map}", "named by its path"},
		{"resources:\n  p: {node: 'project/{project}'}\n  q: {node: 'project/{project}'}\n", "3:3: resources.q", "ambiguous: p matches"},
		{good + "  op: {write: [B]}\n", "6:16: operations.op.write", "not a resource of lockkeeper.yaml; next: use one of A, map, project"},
		{good + "  op:\n", "6:3: operations.op", "names no resource"},
		{good + "  op: {write: [A], unlocked: why}\n", "6:30: operations.op.unlocked", "conflicts with the resources"},
		{good + "  op: {write_all: [A]}\n", "6:20: operations.op.write_all", "covers files, and only a node has nodes below it"},
		{good + "  op: {may_write: [map]}\n", "6:20: operations.op.may_write", "a node cannot be optional"},
		{good + "  op: {write: [A], prompt: 3}\n  po: {write: [A], prompt: 3}\n", "7:28: operations.po.prompt", "already the prompt of op"},
		{good + "  op: {write: [A], min_objects: 5, max_objects: 4}\n", "6:33: operations.op.min_objects", "more than max_objects, 4"},
		{good + "  op: {write: [A], max_objects: 0}\n", "6:33: operations.op.max_objects", "needs at least one object"},
		{good + "  op: {read: [project], write: [map], several: [A]}\n", "6:49: operations.op.several", "not a resource of this operation"},
		{good + "  op: {write: [A], several: [A]}\n", "6:30: operations.op.several", "there is only one such resource"},
		{good + "  op: {write: [A], max_objects: 4, beyond: pop}\n", "6:44: operations.op.beyond", "not an operation of the table; next: did you mean op?"},
		{good + "  op: {write: [A], beyond: po}\n  po: {write: [A]}\n", "6:28: operations.op.beyond", "never used without max_objects"},
		{good + "  op: {write: [A], max_objects: 4, beyond: po}\n  po: {write: [A], min_objects: 6}\n", "6:44: operations.op.beyond", "leave no number between them"},
		{good + "  op: {write: [A], max_objects: 4, beyond: op}\n", "6:44: operations.op.beyond", "not larger than this operation, which ends at 4"},
		{good + "  op: {write: [A], max_objects: 4, beyond: po}\n  po: {write: [A], max_objects: 3, beyond: op}\n", "6:44: operations.op.beyond", "not larger than this operation, which ends at 4"},
	} {
		_, err := tables(t, c.text)
		if err == nil || lockkeeper.CodeOf(err) != lockkeeper.CodeInput ||
			!strings.Contains(err.Error(), config.FileName+":"+c.place+" ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n%v\nwant %s … %s", c.text, err, c.place, c.want)
		}
	}
}

// All problems are reported together.
func TestBadTablesSayAll(t *testing.T) {
	_, err := tables(t, "resources:\n  A:\n  B: {files: ['{nn}']}\noperations:\n  op: {write: [C]}\n  po:\n")
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("four problems, got: %v", err)
	}
}

// A resource can be claimed for reading only.
//
// shows: LM-57
func TestModes(t *testing.T) {
	s, err := tables(t, "resources:\n  Sources: {files: [sources/], mode: read}\n")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Resolve("Sources"); err != nil || r.Mode != lockkeeper.Read {
		t.Errorf("%+v, %v", r, err)
	}
}
