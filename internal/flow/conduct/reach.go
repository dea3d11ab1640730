package conduct

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/agent/owndir"
	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/toolchain"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/protect"
)

// reach returns a function for the files and variables that an agent, or test and CI commands,
// may use in addition to the workspace. Only an agent gets its own login and the keys of its own
// API.
func reach(ctx context.Context, a *project.Project, agents, env []string) (func(agent string) run.Reach, error) {
	c := a.Config
	write, err := configured(a, "agent.caches", c.Agent.Caches)
	if err != nil {
		return nil, err
	}
	read, err := configured(a, "agent.read", c.Agent.Read)
	if err != nil {
		return nil, err
	}
	found := toolchain.Find(a.Env, programs(a, agents)...)
	inside := func(path string) bool {
		return slices.ContainsFunc(write, func(dir string) bool { return isWithin(path, protect.Real(dir)) }) || overlap(path, a.StateDir) || overlap(path, a.Below(project.DirName))
	}
	checks := run.Reach{
		Write: write, Read: append(read, slices.DeleteFunc(append(found.Read, environments(a)...), inside)...),
		Scratch: scratchOf(found.Caches, inside), Keep: c.Run.CheckEnv, Home: gitIdentity(ctx, a.Root.Dir(), env),
	}
	byName := map[string]run.Reach{"": checks}
	for _, name := range slices.DeleteFunc(slices.Clone(agents), func(name string) bool { return name == "" }) {
		r := checks
		named, _ := program.ByName(name)
		r.Own = owndir.Of(name, a.Env, filepath.Join(a.StateDir, "logins.lock"), func(dir string) bool {
			return !overlap(dir, a.Root.Dir()) && !overlap(dir, a.StateDir)
		})
		r.Keep = append(slices.Clone(c.Agent.Env), named.Variables(a.Env)...)
		byName[name] = r
	}
	return func(agent string) run.Reach { return byName[agent] }, nil
}

func scratchOf(caches []toolchain.Cache, inside func(path string) bool) (list []sandbox.Scratch) {
	for _, c := range caches {
		if !inside(c.Path) {
			list = append(list, sandbox.Scratch{Path: c.Path, Rebuilt: c.Built})
		}
	}
	return list
}

// configured returns the paths of a setting. It refuses a path that contains Lockkeeper's own
// state, which would make every agent an administrator.
func configured(a *project.Project, key string, paths []string) (list []string, err error) {
	home, _ := a.Env("HOME")
	for _, given := range paths {
		path := given
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(path) {
			path = a.Below(path)
		}
		for _, own := range []string{a.StateDir, a.Below(project.DirName)} {
			if overlap(path, own) {
				return nil, &lockkeeper.InputError{Field: key, Value: given, Reason: "Lockkeeper's own state is in " + own, Next: "name only directories outside of it"}
			}
		}
		list = append(list, path)
	}
	return list, nil
}

// programs lists the programs that start agents, and the files among their arguments.
func programs(a *project.Project, agents []string) (list []string) {
	for _, name := range agents {
		if name == "" {
			continue // test and CI commands have no agent program
		}
		if name != a.Config.Agent.Name || len(a.Config.Agent.Command) == 0 {
			list = append(list, name)
			continue
		}
		for i, word := range a.Config.Agent.Command {
			if isWithin(filepath.Clean(word), a.Root.Dir()) {
				continue // the workspace has it
			}
			if i == 0 || filepath.IsAbs(word) {
				list = append(list, word)
			}
		}
	}
	return list
}

// environments lists the virtual environments of Python in the codebase. Programs in a copy of
// one use the original as their interpreter.
func environments(a *project.Project) (list []string) {
	for _, pattern := range []string{"*/pyvenv.cfg", ".*/pyvenv.cfg"} {
		found, err := filepath.Glob(filepath.Join(a.Root.Dir(), pattern))
		if err != nil {
			continue // the pattern is fixed, but the root may have brackets in its name
		}
		for _, file := range found {
			list = append(list, filepath.Dir(file))
		}
	}
	return list
}

// overlap reports whether one of two directories contains the other, after following links.
func overlap(a, b string) bool {
	a, b = protect.Real(a), protect.Real(b)
	return isWithin(a, b) || isWithin(b, a)
}

func isWithin(path, dir string) bool { return strings.HasPrefix(path+"/", dir+"/") }

// gitIdentity returns the git configuration of commands: the committer, and nothing else of
// the person's configuration.
func gitIdentity(ctx context.Context, root string, env []string) map[string]string {
	text := ""
	name, email := git.Identity(ctx, root, env)
	for _, set := range []struct{ key, value string }{{"name", name}, {"email", email}} {
		if set.value != "" {
			text += fmt.Sprintf("\t%s = %q\n", set.key, set.value)
		}
	}
	if text == "" {
		return nil
	}
	return map[string]string{".gitconfig": "[user]\n" + text}
}
