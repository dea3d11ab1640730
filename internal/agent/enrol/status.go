package enrol

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
)

// A Program holds the words with which hosts start this program.
type Program struct {
	Shell string // the program as the first words of a shell command
	Path  string // path to start the program without a shell
}

// Find returns how hosts can start this program: by its name if PATH finds it, otherwise with its
// directory.
func (s Site) Find(executable string) (Program, error) {
	if s.lookPath(serverName) != "" {
		return Program{serverName, serverName}, nil
	}
	if filepath.Base(executable) != serverName {
		return Program{}, &lockkeeper.RefusedError{Act: "init", Reason: "no lockkeeper is in PATH, and this program is called " + filepath.Base(executable), Next: "install it as lockkeeper in a directory of PATH"}
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")
	return Program{`PATH="$PATH:` + quote.Replace(filepath.Dir(executable)) + `" ` + serverName, executable}, nil
}

// lookPath finds a program in PATH. It returns "" if there is none.
func (s Site) lookPath(name string) string {
	if found := s.InPath(name); found != nil {
		return found[0]
	}
	return ""
}

// InPath lists the programs with a name in PATH, each file once.
func (s Site) InPath(name string) (list []string) {
	path, _ := s.Env("PATH")
	var seen []os.FileInfo
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if !filepath.IsAbs(dir) || err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if !slices.ContainsFunc(seen, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			seen, list = append(seen, info), append(list, file)
		}
	}
	return list
}

// Status describes the settings that a host finds in a codebase.
type Status struct {
	Host     Host
	Program  string // path of the host's program; empty: not in PATH
	Enrolled bool   // `lockkeeper init` enrolled the host here
	Hooks    []Hook // our hooks that the host finds
	Others   []Hook // hooks of other programs that may change what a call writes after our check
	Off      string // the setting that disables our hooks; empty: none
	Stray    string // the setting that changes the environment of hooks; empty: none
	Unknown  string // why the hooks of our enabled plugin cannot be determined
	Fault    error  // why the settings of the host cannot be read
}

// Status reads the settings of a host. A missing file sets nothing.
func (s Site) Status(h Host) Status {
	st := Status{Host: h, Program: s.lookPath(h.Program)}
	fault := func(err error) { st.Fault = errors.Join(st.Fault, err) }
	kept, err := s.recordOf(h)
	st.Enrolled = kept != nil
	fault(err)
	var files []string
	for _, name := range h.settings() {
		found, err := s.named(name)
		fault(err)
		files = append(files, found...)
	}
	for _, name := range files {
		text, err := s.readSettings(name)
		var found []Hook
		if err == nil {
			found, err = h.hooksIn(text)
		}
		if err != nil {
			fault(refused(Edit{Path: name, Before: []byte(text)}, err))
		}
		st.Hooks = append(st.Hooks, h.placed(found, name, name, text)...)
		if root, err := parseObject(text, ""); err == nil && !h.scripted { // otherwise the fault is already recorded
			st.Others = append(st.Others, othersIn(root, h, name)...)
		}
	}
	found, unknown, err := s.pluginHooks(h)
	fault(err)
	st.Hooks, st.Unknown = append(st.Hooks, found...), unknown
	others, err := s.pluginsOfOthers(h)
	fault(err)
	st.Others = append(st.Others, others...)
	others, err = s.scriptsOfOthers(h)
	fault(err)
	st.Others = append(st.Others, others...)
	if i := slices.IndexFunc(st.Hooks, func(k Hook) bool { return k.Doubt != "" }); h.together && i >= 0 {
		for j := range st.Hooks {
			st.Hooks[j].Doubt = st.Hooks[i].Doubt
		}
	}
	st.Off, err = s.offBy(h)
	fault(err)
	st.Stray, err = s.strayBy(h, files)
	fault(err)
	return st
}

// placed returns hooks with the file in which they were found, and its doubts.
func (h Host) placed(found []Hook, known, file, text string) []Hook {
	for i := range found {
		found[i].File = known
		if !h.scripted {
			found[i].Doubt = h.doubt(file, text)
		}
	}
	return found
}

// Before returns the hook that runs before a tool call, or nil.
func (st Status) Before() *Hook { return st.hook(st.Host.turns[0].name) }

// hook returns the hook for an event: the first that covers it, otherwise the first, or nil.
func (st Status) hook(name string) (first *Hook) {
	for i := range st.Hooks {
		k := &st.Hooks[i]
		if k.Event == name && (first == nil || !first.covers() && k.covers()) {
			first = k
		}
	}
	return first
}

// Below lists the events whose hooks are not found by a session that starts in a subdirectory, as
// far as the files show. It is empty for a host that also looks for settings above its working
// directory.
func (st Status) Below() (list []string) {
	if st.Host.looksUp() {
		return nil
	}
	for _, ev := range st.Host.turns {
		if !slices.ContainsFunc(st.Hooks, func(k Hook) bool { return k.Event == ev.name && k.covers() && k.anywhere() }) {
			list = append(list, ev.name)
		}
	}
	return list
}

// NeedsTrust reports whether the host runs our hooks only after a person has trusted them.
func (st Status) NeedsTrust() bool {
	return st.Host.Trust != "" && !(st.Host.trustsOwn && st.Below() == nil)
}

// Anywhere returns the hook before a tool call that a session finds wherever it starts, or nil.
func (st Status) Anywhere() *Hook {
	for i := range st.Hooks {
		if k := &st.Hooks[i]; k.Event == st.Host.turns[0].name && k.covers() && (k.anywhere() || st.Host.looksUp()) {
			return k
		}
	}
	return nil
}

// anywhere reports whether a host loads a hook wherever it starts: from the settings of the user or
// the machine, or from a plugin.
func (k *Hook) anywhere() bool {
	return isHome(k.File) || strings.HasPrefix(k.File, "/") || strings.HasPrefix(k.File, "plugin ")
}

// covers reports whether a hook works, as far as the files show.
func (k *Hook) covers() bool { return k.Differs == "" && k.Doubt == "" }

// Lacking lists the hooks of events other than before a call that do not work, as far as the
// files show.
func (st Status) Lacking() (list []string) {
	for _, ev := range st.Host.turns {
		switch k := st.hook(ev.name); {
		case ev.before:
		case k == nil:
			list = append(list, ev.name+" is missing")
		case k.Doubt != "":
			list = append(list, ev.name+": "+k.Doubt)
		case k.Differs != "":
			list = append(list, ev.name+" in "+k.File+" differs from what init writes: "+k.Differs)
		}
	}
	return list
}
