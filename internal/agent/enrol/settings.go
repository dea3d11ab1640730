package enrol

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"lockkeeper/internal/agent/program"
)

// place returns the location of a file that a host reads: in the codebase, in the user's home
// (~), or on the machine. It returns "" if there is no home.
func (s Site) place(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Join("/", s.machine, name)
	}
	below, isHome := strings.CutPrefix(name, "~/")
	if !isHome {
		return filepath.Join(s.Root, filepath.FromSlash(name))
	}
	home, _ := s.Env("HOME")
	for _, p := range program.All() {
		rest, its := strings.CutPrefix(below, p.Dir+"/")
		if moved, _ := p.MovedDir(s.Env); its && filepath.IsAbs(moved) {
			return filepath.Join(moved, rest)
		}
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, filepath.FromSlash(below))
}

// named lists the files that match a name with *. The results have the same form as the name (see
// place).
func (s Site) named(name string) ([]string, error) {
	if !strings.Contains(name, "*") {
		return []string{name}, nil
	}
	found, err := filepath.Glob(s.place(name))
	for i := range found {
		found[i] = filepath.Join(filepath.Dir(name), filepath.Base(found[i]))
	}
	return found, err
}

// readSettings reads a settings file of a host. It returns "" if the file is missing.
func (s Site) readSettings(name string) (string, error) {
	file := s.place(name)
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// setting returns the value of a setting, or nil if it is not set. A JSON file that cannot be
// parsed sets nothing here; reading its hooks reports the error.
func (s Site) setting(file string, place ...string) (any, error) {
	text, err := s.readSettings(file)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(file, ".toml") {
		root, err := parseObject(text, "")
		if err != nil {
			return nil, nil
		}
		if at := root.find(place...); at != nil {
			return at.plain(), nil
		}
		return nil, nil
	}
	all, err := parseTOML(text)
	if err != nil {
		return nil, refused(Edit{Path: file, Before: []byte(text)}, err)
	}
	var value any = all
	for _, key := range place {
		table, _ := value.(map[string]any)
		value = table[key]
	}
	return value, nil
}

// offBy returns the setting that disables all hooks of a host, or ours; "" if no setting does.
func (s Site) offBy(h Host) (which string, err error) {
	for _, o := range h.off {
		files, wrong := s.named(o.file)
		err = errors.Join(err, wrong)
		for _, file := range files {
			value, wrong := s.setting(file, o.place...)
			err = errors.Join(err, wrong)
			if value != nil && !reflect.DeepEqual(value, o.on) {
				which = strings.Join(o.place, ".") + " in " + file
			}
		}
	}
	return which, err
}

// steering lists variables that decide which program a hook starts, how it runs, or whose locks
// it uses. A trailing * matches any suffix.
func steering() []string {
	return []string{"PATH", "HOME", "SHELL", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "BASH_FUNC_*", "LD_*", "DYLD_*", "XDG_STATE_HOME", "PG*", "LOCKKEEPER_*",
		"CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SHELL*", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"}
}

// strayBy returns a setting that gives hooks a different environment than commands have here, or "".
func (s Site) strayBy(h Host, files []string) (which string, err error) {
	if h.env == "" {
		return "", nil
	}
	for _, file := range files {
		value, wrong := s.setting(file, h.env)
		err = errors.Join(err, wrong)
		set, _ := value.(map[string]any)
		for name := range set {
			if slices.ContainsFunc(steering(), func(known string) bool {
				begin, open := strings.CutSuffix(known, "*")
				return name == known || open && strings.HasPrefix(name, begin)
			}) && (which == "" || h.env+"."+name+" in "+file < which) {
				which = h.env + "." + name + " in " + file
			}
		}
	}
	return which, err
}
