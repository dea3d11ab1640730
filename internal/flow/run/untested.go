package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Untested returns a warning about work that the run would land untested. It returns "" if all
// work is tested.
func (p *Pipeline) Untested() (string, error) {
	c := p.opt.Checks
	for _, phase := range p.opt.Flow.Checks() {
		if len(c.Commands[phase.Name]) > 0 {
			return "", nil
		}
	}
	all, bare, what, why := 0, 0, p.opt.Flow.Counted+"s", "no test_command and no ci commands are configured"
	missing := func(unit string) (bool, error) {
		if c.Test == "" || !strings.Contains(c.Test, "{path}") || c.Suite != "" {
			return c.Test == "", nil
		}
		file := p.testOf(unit)
		if file == "" {
			return true, nil
		}
		_, err := os.Stat(filepath.Join(p.opt.Root.Dir(), filepath.FromSlash(file)))
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return false, err
	}
	if c.Test != "" {
		why = "their test files are missing, and no suite_command and no ci commands are configured"
	}
	count := func(unit string, own []string) error {
		all++
		if len(own) > 0 {
			return nil
		}
		is, err := missing(unit)
		if is {
			bare++
		}
		return err
	}
	var err error
	if p.opt.Tasks != nil {
		for _, t := range p.opt.Tasks.Tasks {
			own := t.Tests
			if len(own) == 0 {
				own = p.opt.Tasks.Tests
			}
			err = errors.Join(err, count(p.opt.Flow.OneUnit, own))
		}
	} else {
		for _, unit := range p.Units() {
			err = errors.Join(err, count(unit, nil))
		}
	}
	switch bare {
	case 0:
		return "", err
	case all:
		return "nothing will be tested: " + why, err
	}
	return fmt.Sprintf("%d of %d %s will not be tested: %s", bare, all, what, why), err
}
