package enrol

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper"
)

// Program is how hosts start ours.
type Program struct {
	Shell string // in a command of a shell
	Path  string // without one
}

// Find finds out how hosts can start this program: by its name where PATH leads to one,
// else with its directory.
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

// lookPath finds a program in PATH; empty: there is none.
func (s Site) lookPath(name string) string {
	path, _ := s.Env("PATH")
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// Standing is how a host stands in a codebase.
type Standing struct {
	Host     Host
	Program  string // where the host's own program is; empty: not in PATH
	Enrolled bool   // by init, here
	Hooks    []Hook // of ours, that it finds
	Missing  []string
	Off      string // which setting switches all hooks off; empty: none does
	Fault    error  // its settings are not understood
}

// Look finds out how a host stands. A file that is not there says nothing.
func (s Site) Look(h Host) Standing {
	st := Standing{Host: h, Program: s.lookPath(h.Program)}
	kept, err := s.recordOf(h)
	st.Enrolled = kept != nil
	st.Fault = errors.Join(st.Fault, err)
	for _, name := range append([]string{h.files[0].path}, h.reads...) {
		text, err := s.readSettings(name)
		var found []Hook
		if err == nil {
			found, err = hooksIn(text, h)
		}
		if err != nil {
			st.Fault = errors.Join(st.Fault, refused(Edit{Path: name, Before: []byte(text)}, err))
		}
		for i := range found {
			found[i].File = name
		}
		st.Hooks = append(st.Hooks, found...)
	}
	for _, ev := range h.turns {
		if st.hook(ev.name) == nil {
			st.Missing = append(st.Missing, ev.name)
		}
	}
	for _, o := range h.off {
		if off, err := s.isOff(o); err != nil {
			st.Fault = errors.Join(st.Fault, err)
		} else if off {
			st.Off = strings.Join(o.place, ".") + " in " + o.file
		}
	}
	return st
}

// Before is the hook that runs before a call of a tool; nil: there is none.
func (st Standing) Before() *Hook { return st.hook(st.Host.turns[0].name) }

func (st Standing) hook(name string) *Hook {
	for i := range st.Hooks {
		if st.Hooks[i].Event == name {
			return &st.Hooks[i]
		}
	}
	return nil
}

// FailsOpen reports whether a call is let through when our program is missing or dies.
func (k Hook) FailsOpen() bool { return !strings.HasSuffix(strings.TrimSpace(k.Command), "|| exit 2") }

// readSettings reads a file in which a host looks; it is empty when there is none.
func (s Site) readSettings(name string) (string, error) {
	file := filepath.Join(s.Root, filepath.FromSlash(name))
	if below, isHome := strings.CutPrefix(name, "~/"); isHome {
		home, _ := s.Env("HOME")
		if !filepath.IsAbs(home) {
			return "", nil
		}
		file = filepath.Join(home, filepath.FromSlash(below))
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

func (s Site) isOff(o switchOff) (bool, error) {
	text, err := s.readSettings(o.file)
	if err != nil {
		return false, err
	}
	var value any
	if strings.HasSuffix(o.file, ".toml") {
		all, err := parseTOML(text)
		if err != nil {
			return false, refused(Edit{Path: o.file, Before: []byte(text)}, err)
		}
		value = all
		for _, key := range o.place {
			table, _ := value.(map[string]any)
			value = table[key]
		}
	} else if root, err := parseObject(text, ""); err == nil { // else the hooks in it are not understood either
		if at := root.find(o.place...); at != nil {
			value = at.value
		}
	}
	set, isSet := value.(bool)
	return isSet && set == o.value, nil
}
