package project

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project/config"
)

// A plan is the configuration file after init.
type plan struct {
	text    string
	changed bool   // the new file differs from the present one
	space   string // the space that the file names
	file    *config.Config
}

var layoutLine = regexp.MustCompile(`(?m)^layout:`)

// declareLayout adds the layout to a file without one, which would have the defaults of Rails. A
// file that says itself what agents may change needs none.
func (p *plan) declareLayout(root string) {
	rails := config.IsRails(root)
	if layoutLine.MatchString(p.text) || !p.changed && (rails || p.file.Source("gate.allowed_write_paths") != config.FromDefault) {
		return
	}
	layout := config.Default().Layout
	if rails {
		layout = config.Rails
	}
	p.set("layout", layout)
}

// planConfig plans the configuration file: the existing one or the sample, with the store, the
// deployment and the space given to init. It refuses a file with other values. PostgreSQL without
// a declared deployment becomes multi-node, the safer choice.
func planConfig(path string, s Settings, cfg *config.Config, opt InitOptions) (*plan, error) {
	space := opt.Space
	read, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	text := string(read)
	switch {
	case missing:
		text = cmp.Or(opt.File, config.Sample())
	case err != nil:
		return nil, err
	}
	file, err := config.LoadFile(path)
	if err != nil {
		return nil, err
	}
	deployment := s.Deployment
	if deployment == "" && file.Deployment == "" && config.IsPostgres(cfg.Store) {
		deployment = cmp.Or(cfg.Deployment, config.MultiNode)
	}
	p := &plan{text: text, changed: missing, space: file.Space, file: file}
	if !config.IsPostgres(cfg.Store) {
		space = ""
	}
	for _, v := range []struct{ key, want, have, unset string }{
		{"store", s.Store, file.Store, config.Default().Store},
		{"deployment", deployment, file.Deployment, ""},
		{"space", space, file.Space, ""},
	} {
		switch {
		case v.want == "" || v.want == v.have:
		case v.have != v.unset:
			return nil, &lockkeeper.InputError{Field: v.key, Value: v.want, Reason: path + " names another one, " + config.Redact(v.have),
				Next: "change it there, or leave --" + v.key + " out"}
		default:
			p.set(v.key, v.want)
		}
	}
	if space != "" {
		p.space = space
	}
	return p, nil
}

func (p *plan) set(key, value string) {
	p.text, p.changed = withValue(p.text, key, value), true
}

// withValue sets a value in the text of a configuration file. It replaces the commented line of
// the sample if there is one.
func withValue(text, key, value string) string {
	line := key + ": '" + strings.ReplaceAll(value, "'", "''") + "'"
	if at := regexp.MustCompile(`(?m)^#?` + key + `:.*$`).FindStringIndex(text); at != nil {
		return text[:at[0]] + line + text[at[1]:]
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line + "\n"
}
