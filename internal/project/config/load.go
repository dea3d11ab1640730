package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/machine/disk"
)

// maxFileSize is far above the size of any useful file.
const maxFileSize = 64 << 10

// Load reads the configuration. path may be empty or name a missing file. env is like
// os.LookupEnv; an empty variable counts as unset. flags maps the names of given flags to
// their values; a flag has the name of its key, with dashes for dots and underscores. The
// error joins one or several *lockkeeper.InputError.
func Load(path string, env func(string) (string, bool), flags map[string]string) (*Config, error) {
	l, err := loadFile(path)
	if err != nil {
		return nil, err
	}
	l.config.documents = append(l.config.documents, l.config.Run.SidecarDir, l.config.Run.AnalysisDir)
	l.environment(env)
	l.flags(flags)
	if len(l.problems) == 0 {
		l.checkTogether()
	}
	return l.result()
}

// LoadFile reads only the file, for code that changes it. Each value is valid, but values are
// not checked against each other, because that depends on the other sources.
func LoadFile(path string) (*Config, error) {
	l, err := loadFile(path)
	if err != nil {
		return nil, err
	}
	return l.result()
}

func loadFile(path string) (*loader, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	c, fields := defaults()
	l := &loader{config: c, fields: fields, tables: tablesOf(c), path: path}
	l.file(text)
	l.layout(len(text) > 0)
	return l, nil
}

// layout sets the defaults of the layout. A file without a layout was made by an earlier version,
// whose defaults were those of Rails. Without a file, the codebase decides.
func (l *loader) layout(file bool) {
	c := l.config
	if c.sources["layout"] == "" && (file || l.path != "" && IsRails(filepath.Dir(l.path))) {
		c.Layout = Rails
	}
	if c.Layout != Rails {
		return
	}
	for _, f := range l.fields {
		if _, set := c.sources[f.key]; set || f.rails == "" {
			continue
		}
		if err := f.set(f.rails); err != nil {
			panic(fmt.Sprintf("config: default %q of %s: %v", f.rails, f.key, err))
		}
	}
}

// IsRails reports whether a directory has a Rails application.
func IsRails(dir string) bool {
	for _, sign := range []string{"config/application.rb", "app/controllers"} {
		if _, err := os.Stat(filepath.Join(dir, sign)); err == nil {
			return true
		}
	}
	return false
}

// A loader fills one Config and collects the errors of its sources.
type loader struct {
	config   *Config
	fields   []field
	tables   map[string]table
	path     string
	problems []error
}

func (l *loader) result() (*Config, error) {
	if len(l.problems) > 0 {
		return nil, errors.Join(l.problems...)
	}
	return l.config, nil
}

func (l *loader) refuse(where, value, reason, next string) {
	l.problems = append(l.problems, &lockkeeper.InputError{Field: where, Value: value, Reason: reason, Next: next})
}

// apply sets one field from a text. where says where the text was found; source is the short form
// of where.
func (l *loader) apply(f field, text, where, source string) {
	if err := f.set(text); err != nil {
		l.refuse(where, f.hide(text), lockkeeper.Message(err), lockkeeper.NextStep(err))
		return
	}
	l.config.sources[f.key] = source
}

func (l *loader) environment(env func(string) (string, bool)) {
	if env == nil {
		return
	}
	for _, f := range l.fields {
		if f.env == "" {
			continue
		}
		if text, ok := env(f.env); ok && text != "" {
			source := "env " + f.env
			l.apply(f, text, source, source)
		}
	}
}

func (l *loader) flags(flags map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		source := "flag --" + name
		i := slices.IndexFunc(l.fields, func(f field) bool { return f.flag() == name })
		if i < 0 {
			l.refuse("flag", "--"+name, "unknown setting", "")
			continue
		}
		l.apply(l.fields[i], flags[name], source, source)
	}
}

// checkTogether refuses values that contradict each other.
func (l *loader) checkTogether() {
	c := l.config
	for _, name := range slices.Sorted(maps.Keys(c.Leases)) {
		lease := c.Leases[name]
		if lease.Heartbeat < lease.TTL {
			continue
		}
		ttl, beat := "policies."+name+".ttl", "policies."+name+".heartbeat"
		l.refuse(beat, formatDuration(lease.Heartbeat),
			fmt.Sprintf("comes from %s and is not shorter than ttl %s from %s, so the lease would end between two heartbeats",
				c.Source(beat), formatDuration(lease.TTL), c.Source(ttl)),
			"set "+beat+" to a third of the ttl or less")
	}
	if c.Deployment == MultiNode && !IsPostgres(c.Store) {
		l.refuse("store", Redact(c.Store),
			fmt.Sprintf("comes from %s and is a file of one machine, while deployment multi-node comes from %s",
				c.Source("store"), c.Source("deployment")),
			"set store to postgres://user@host/database")
	}
}

// readFile reads a regular file; a missing one is empty. It refuses other files before it opens
// them, because opening a pipe would wait for a writer.
func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	refuse := func(reason, next string) ([]byte, error) {
		return nil, &lockkeeper.InputError{Field: "configuration file", Value: path, Reason: reason, Next: next}
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return refuse(disk.Reason(err), "")
	}
	if !info.Mode().IsRegular() {
		return refuse("not a regular file", "move it away or name another file")
	}
	f, err := os.Open(path)
	if err != nil {
		return refuse(disk.Reason(err), "make it readable for this user")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return refuse(disk.Reason(err), "")
	}
	if len(text) > maxFileSize {
		return refuse(fmt.Sprintf("larger than %d bytes", maxFileSize), "")
	}
	return text, nil
}

// source returns the short name of a line of the file.
func (l *loader) source(line int) string { return fmt.Sprintf("%s:%d", filepath.Base(l.path), line) }

// keysBelow lists the names directly below a prefix, sorted.
func (l *loader) keysBelow(prefix string) []string {
	var names []string
	for _, f := range l.fields {
		if rest, ok := strings.CutPrefix(f.key, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	if prefix == "" {
		names = slices.AppendSeq(names, maps.Keys(l.tables))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
