package lockkeeper_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// mayChange lists the packages and files that change files without the gate, and why those
// files are not in the shared tree.
var mayChange = map[string]string{
	"durable":                                    "the operations themselves",
	"rescue":                                     "its shelf in .lockkeeper",
	"internal/compat/lease":                      "lease files, which only this package writes",
	"internal/compat/tidy/tidy.go":               "the queue of planned moves, beside the lease files",
	"internal/compat/tidy/runs.go":               "directories of .autonomous_runs that moves have left empty, never a file",
	"internal/compat/bookfile":                   "the lock file of a book project, which no person edits",
	"store/sqlstore":                             "the database, and what lies beside it",
	"internal/project/root.go":                   "a witness in the user's own state directory",
	"internal/surface/access":                    "who may use the server, in the user's own state directory",
	"internal/project/state.go":                  "tokens in the user's own state directory",
	"internal/surface/doctor/try.go":             "a file of its own that should have been refused, which it removes, and a directory for trials",
	"internal/surface/doctor/checks.go":          "a trial in .lockkeeper",
	"internal/surface/doctor/disk_linux.go":      "the same",
	"internal/agent/enrol/apply.go":              "settings of agents, which a person has seen as a diff and asks for",
	"internal/session":                           "what sessions remember, in the user's own state directory",
	"internal/session/deferred":                  "patches that wait for a lock, in .lockkeeper",
	"internal/session/snapshot":                  "copies of uncommitted files, in .lockkeeper",
	"internal/project/uninit.go":                 "what init and later commands made, which a person asks to remove",
	"internal/project/init.go":                   ".lockkeeper itself, and a first configuration for a person to edit",
	"internal/flow/conduct/current.go":           "which run is under way, in .lockkeeper",
	"internal/job/output.go":                     "what commands of queued items said, in .lockkeeper",
	"internal/git/hook.go":                       "a hook of git, which a person asks for",
	"internal/git/unhook.go":                     "hooks that were installed here, which a person asks to remove",
	"internal/git/moved.go":                      "indexes and objects in a temporary directory of its own",
	"internal/surface/cli/agents/uninit.go":      "the same, with the hooks",
	"internal/surface/cli/agents/uninitdocs.go":  "documents of a preset, which a person asks to remove",
	"internal/surface/cli/agents/init.go":        "hooks of git, which a person asks to remove",
	"internal/surface/cli/agents/initpreset.go":  "the tables of a preset, in the configuration that a person asks for",
	"internal/surface/cli/demo/demo.go":          "a demonstration in a directory of its own",
	"internal/surface/cli/flows/report.go":       "a report, in the file that a person names",
	"internal/surface/cli/help.go":               "manual pages, in the directory that a packager names",
	"internal/surface/cli/flows/decideedit.go":   "decisions, in a file that a person edits",
	"internal/surface/cli/landings/write.go":     "standard input, put aside in a file without a name",
	"internal/agent/owndir":                      "a private directory for each call, and a renewed login in the agent's own directory",
	"internal/agent/files.go":                    "what agents were asked and said, beside their output",
	"internal/agent/scripted":                    "a play in its own workspace, and a count beside its script",
	"internal/agent/workspace":                   "an agent's own copy of the tree, outside of it",
	"internal/flow/documents":                    "the documents of a flow, in folders that only this package writes",
	"internal/flow/progress":                     "the documents of a flow, through internal/flow/documents",
	"internal/flow/run/checkstate.go":            "the same",
	"internal/flow/sample":                       "an application of its own, in a directory that the caller gives",
	"internal/agent/sandbox":                     "the command's own home, temporary files and cache layers; mount points in a new root; a trial in a directory of its own",
	"internal/machine/overlay":                   "the kernel's work directory beside an agent's changes, and a trial in a directory of its own",
	"internal/flow/conduct/predictions.go":       "predictions of earlier runs, in .lockkeeper",
	"internal/flow/conduct/replica.go":           "the documents and calls of a run that another machine began, and what they replace",
	"internal/flow/conduct/crew.go":              "the files of calls of other machines, in the user's own state directory",
	"internal/flow/run/joincall.go":              "what an agent said about a call of another machine, in the user's own state directory",
	"internal/flow/run/remote.go":                "what agents said on another machine, in .lockkeeper",
	"internal/git/parcel":                        "indexes, and a checkout outside of the tree",
	"internal/flow/run/baseline.go":              "what tests said before a run, in .lockkeeper",
	"internal/flow/run/call.go":                  "what agents were asked and said, in .lockkeeper",
	"internal/flow/run/check.go":                 "what tests said, in .lockkeeper",
	"internal/flow/run/confined.go":              "the private directories of a command, beside its workspace",
	"internal/flow/run/toolcaches.go":            "which caches of tools are read-only, beside the workspace",
	"internal/flow/run/slots.go":                 "a locked file for each slot of tests, in the state directory",
	"internal/git/once.go":                       "an empty file in the git directory, which says that a hook has said something",
	"internal/agent/toolcache":                   "what trusted tests added to the caches of tools, in the state directory",
	"internal/flow/run/trial.go":                 "what tests said on the unchanged tree, beside their workspace",
	"internal/flow/run/pipeline.go":              "the directory in which copies of the tree are made",
	"internal/machine/process/cgroup_linux.go":   "control groups, which are directories of the kernel's",
	"internal/machine/process/keeper_linux.go":   "the terminal and the null device, handed to a command",
	"internal/machine/process/presence_linux.go": ".lockkeeper/running, a locked file for each command, and .lockkeeper/boots, one for each boot",
	"internal/machine/process/terminal_linux.go": "a terminal, opened to find its foreground process",
}

// changing lists the names of functions and methods that change files in packages os, syscall
// and unix, os.Root, *os.File, durable.Ops and durable.Disk.
var changing = words(`WriteFile WriteJSON Create CreateTemp Creat Rename Renameat Renameat2 Move Exchange
	Remove RemoveAll RemoveDir Unlink Unlinkat Rmdir Mkdir MkdirAll MkdirTemp Mkdirat Mkfifo Mkfifoat Mknod Mknodat
	Chmod Fchmod Fchmodat Chown Lchown Fchown Fchownat Chtimes Utimes UtimesNano UtimesNanoAt
	Symlink Symlinkat Link Linkat Truncate Ftruncate Fallocate CopyFS Setxattr Lsetxattr Fsetxattr Removexattr`)

// opening lists the functions that change files if their flags say so.
var opening = words("OpenFile Open Openat Openat2")

var writeFlags = words("O_WRONLY O_RDWR O_CREATE O_CREAT O_TRUNC O_APPEND O_TMPFILE")

// ours lists packages whose own functions have some of these names. They change files only by the
// functions above, and are checked themselves. Package ast has a type with such a name, and package
// ansi shortens texts.
var ours = words("gate lock memstore sqlstore rescue tree lockkeeper project process config ast ansi")

func words(s string) []string { return strings.Fields(s) }

// An act is one place in the module that changes files.
type act struct {
	file string // relative to the root
	in   string // the enclosing function
	on   string // the package or receiver
	name string
}

// acts returns the places in a source that change files, and the calls of the extra functions.
func acts(file, text string, extra ...string) (found []act, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range parsed.Decls {
		in := "a variable"
		if fn, ok := decl.(*ast.FuncDecl); ok {
			in = fn.Name.Name
		}
		called := map[ast.Expr]*ast.CallExpr{}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				called[n.Fun] = n
			case *ast.SelectorExpr: // called, or passed as a value
				a := act{file: file, in: in, on: receiver(n.X), name: n.Sel.Name}
				call := called[n]
				changes := slices.Contains(changing, a.name) || slices.Contains(opening, a.name) && call != nil && mentions(call.Args, writeFlags)
				if (changes || slices.Contains(extra, a.name)) && !slices.Contains(ours, a.on) {
					found = append(found, a)
				}
			}
			return true
		})
	}
	return found, nil
}

// receiver returns the last name of the expression that a method is called on.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return "a value"
}

func mentions(list []ast.Expr, names []string) (found bool) {
	for _, x := range list {
		ast.Inspect(x, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && slices.Contains(names, id.Name) {
				found = true
			}
			return true
		})
	}
	return found
}

// writeProblems checks that only the gate and the entries of mayChange change files, and that
// every entry is needed.
func writeProblems(list []act) (problems []string) {
	used := map[string]bool{}
	for _, a := range list {
		dir := path.Dir(a.file)
		switch {
		case dir == "gate":
		case mayChange[a.file] != "":
			used[a.file] = true
		case mayChange[dir] != "":
			used[dir] = true
		default:
			problems = append(problems, fmt.Sprintf("%s: %s calls %s.%s: files are changed by the gate, or by whom mayChange lists", a.file, a.in, a.on, a.name))
		}
	}
	for _, who := range slices.Sorted(maps.Keys(mayChange)) {
		if !used[who] {
			problems = append(problems, who+" is listed in mayChange and changes nothing")
		}
	}
	return problems
}

// gateMay lists the functions of the gate that may use operations that are forbidden in the
// tree. They work on stages, kept originals and empty directories. Renames are allowed
// everywhere, because with one end in a stage they are the normal operation of the gate.
var gateMay = map[string][]string{
	"Create":    {"put", "copyEntry", "noteDraft", "noteDirs", "makeSite"},                                               // in a stage or a draft, or the site file
	"Chmod":     {"put", "makeDir", "copyDir", "copyEntry"},                                                              // of what is new in a stage or a draft
	"Remove":    {"empty", "keepOriginals", "takeDraft", "drainEntry", "makeSite", "learnSite"},                          // in a stage, the draft of the site file, or an expired original
	"RemoveDir": {"empty", "discard", "drop", "returnOriginals", "drain", "drainEntry", "forget", "makeDir", "clearDir"}, // removes only empty directories
	"Mkdir":     {"makeStage", "subdir", "makeDir"},                                                                      // in a stage, a directory of the gate, or a draft
	"makeStage": {"run", "draft", "tryRecover"},                                                                          // once for each landing and each recovery
	"Move":      nil,
	"Exchange":  nil,
}

// gateProblems checks the third invariant of the gate.
func gateProblems(list []act) (problems []string) {
	count := map[string]int{}
	for _, a := range list {
		if path.Dir(a.file) != "gate" {
			continue
		}
		in, known := gateMay[a.name]
		count[a.name+" in "+a.in]++
		switch {
		case !known || a.name != "makeStage" && a.on != "disk":
			problems = append(problems, fmt.Sprintf("%s: %s calls %s.%s: the gate changes files through its Disk alone", a.file, a.in, a.on, a.name))
		case in != nil && !slices.Contains(in, a.in):
			problems = append(problems, fmt.Sprintf("%s: %s calls %s.%s, which only %s may", a.file, a.in, a.on, a.name, strings.Join(in, ", ")))
		case a.name == "makeStage" && count[a.name+" in "+a.in] > 1:
			problems = append(problems, fmt.Sprintf("%s: %s makes a second stage", a.file, a.in))
		}
	}
	return problems
}

// shows: SW-33 SW-38 CF-15 DL-10 DL-90
func TestOnlyTheGateWritesIntoTheTree(t *testing.T) {
	var list []act
	for _, f := range moduleSources(t) {
		if f.isTest() || slices.Contains(testSupport, f.dir) {
			continue
		}
		text, err := os.ReadFile(f.path())
		if err != nil {
			t.Fatal(err)
		}
		found, err := acts(f.path(), string(text), "makeStage")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	for _, p := range append(writeProblems(list), gateProblems(list)...) {
		t.Error(p)
	}
}

// The rule can fail.
func TestTheRuleOfWritesCanFail(t *testing.T) {
	sources := map[string]string{
		"lock/x.go": `package lock
			import "os"
			func tidy(path string) { os.Remove(path); os.ReadFile(path); os.OpenFile(path, os.O_RDONLY, 0); os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600) }
			var write = os.WriteFile`,
		"tree/x.go": `package tree
			import "golang.org/x/sys/unix"
			func (r *Root) swap(fd int) error { unix.Openat(fd, "x", unix.O_RDONLY, 0); return unix.Renameat2(fd, "a", fd, "b", 0) }
			func (r *Root) through(root *os.Root) { root.Symlink("a", "b"); r.file.Truncate(0) }`,
		"internal/surface/cli/x.go": `package cli
			func f() { gate.Rename("a", "b"); durable.WriteFile(ctx, "a", nil, 0) }`,
		"gate/x.go": `package gate
			import "os"
			func (p *applier) do(n int) { p.g.disk.Move(a, "x", b, "y"); p.g.disk.Remove(dir, name); os.Chmod("x", 0); p.g.makeStage(in, name) }
			func (g *Gate) tryRecover() { g.makeStage(in, name); g.makeStage(in, name) }
			func (s *stage) put() { s.g.disk.Create(s.dir, "0"); disk.Chmod(f, 0o644); f.Chmod(0) }`,
	}
	var list []act
	for _, file := range slices.Sorted(maps.Keys(sources)) {
		found, err := acts(file, sources[file], "makeStage")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	unused := slices.DeleteFunc(writeProblems(list), func(p string) bool { return strings.HasSuffix(p, "changes nothing") })
	got := append(unused, gateProblems(list)...)
	const outside, disk = ": files are changed by the gate, or by whom mayChange lists", ": the gate changes files through its Disk alone"
	want := []string{
		"internal/surface/cli/x.go: f calls durable.WriteFile" + outside,
		"lock/x.go: tidy calls os.Remove" + outside,
		"lock/x.go: tidy calls os.OpenFile" + outside,
		"lock/x.go: a variable calls os.WriteFile" + outside,
		"tree/x.go: swap calls unix.Renameat2" + outside,
		"tree/x.go: through calls root.Symlink" + outside,
		"tree/x.go: through calls file.Truncate" + outside,
		"gate/x.go: do calls disk.Remove, which only empty, keepOriginals, takeDraft, drainEntry, makeSite, learnSite may",
		"gate/x.go: do calls os.Chmod" + disk,
		"gate/x.go: do calls g.makeStage, which only run, draft, tryRecover may",
		"gate/x.go: tryRecover makes a second stage",
		"gate/x.go: put calls f.Chmod" + disk,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
