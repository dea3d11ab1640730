package conduct

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/project"
)

// FirstRun returns the command that starts the first run of a codebase.
func FirstRun(a *project.Project) string {
	if needsPlan(a) {
		return "lockkeeper run --plan FILE (see lockkeeper run --help)"
	}
	return "lockkeeper run"
}

// needsPlan reports whether the default flow finds nothing here.
func needsPlan(a *project.Project) bool { return a.Config.Run.DiscoveryGlob == "" }

// firstPlan returns commands that write a plan and run it.
func firstPlan(a *project.Project) string {
	return "write a plan and run it: " + `printf 'tasks:\n  - name: first\n    prompt: Say what to change.\n    writes: ["%s"]\n' ` + shellword.Quote(exampleFile(a)) + " >tasks.yaml; lockkeeper run --plan tasks.yaml"
}

// exampleFile returns a file for the example, because a task must name files.
func exampleFile(a *project.Project) string {
	const readme = "README.md"
	allowed := a.Config.Gate.AllowedWritePaths
	if len(allowed) == 0 || slices.Contains(allowed, ".") || slices.Contains(allowed, readme) {
		return readme
	}
	example := path.Join(allowed[0], readme)
	for _, top := range allowed {
		file := ""
		err := fs.WalkDir(os.DirFS(a.Root.Dir()), top, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case name != top && strings.HasPrefix(d.Name(), "."):
				if d.IsDir() {
					return fs.SkipDir
				}
			case d.Type().IsRegular():
				file = name
				return fs.SkipAll
			}
			return nil
		})
		switch {
		case err != nil || file == "":
		case file != top:
			return file
		default: // an allowed path that is a file, such as go.mod, is rarely the one to change
			example = file
		}
	}
	return example
}
