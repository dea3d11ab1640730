package author

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/bookfile"
	"lockkeeper/internal/process"
	"lockkeeper/internal/resource"
)

// The policies of claims.
const (
	policyInstance = "author" // of an agent's instance, or a foreign tool's
	policyPerson   = "person"
)

// What the metadata of a grant say of a claim.
const (
	claimKey    = "claim"     // its resources, as a list in JSON
	whoKey      = "who"       // the person behind it
	sessionKey  = "session"   // in which it was made
	foreignKey  = "foreign"   // it was taken up from the file at this place
	stampKey    = "timestamp" // as the foreign entry has it
	instanceKey = "instance"  // the same
)

// Author makes and ends claims on one open codebase.
type Author struct {
	app        *app.App
	set        *resource.Set
	file       *bookfile.File // nil: there is no mirror
	mark       bookfile.Mark
	site       string // of the file, among those of all machines
	staleAfter time.Duration
	git        *app.Git
}

// Open reads the table of resources, and which file mirrors the claims. Git is asked
// with the environment, about what is not committed.
func Open(a *app.App, env []string) (*Author, error) {
	set, err := resource.Of(a.Config)
	if err != nil {
		return nil, err
	}
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	au := &Author{app: a, set: set, mark: bookfile.Mark(a.Space), staleAfter: a.Config.Policies()[policyInstance].TTL,
		git: app.NewGit(a.Root.Dir(), a.Root.Dir(), env)}
	if name := a.Config.LocksFile; name != "" {
		au.file = bookfile.Open(a.Root.Dir(), filepath.FromSlash(name))
		au.site = self.Host + ":" + au.file.Path()
	}
	return au, nil
}

// StaleAfter is how long a claim without a sign of life is not stale yet.
func (au *Author) StaleAfter() time.Duration { return au.staleAfter }

// Prompt lists the resources that a prompt of the table works on.
func (au *Author) Prompt(name string, of []string) ([]string, error) {
	return au.set.Prompt(name, of...)
}

// Names are the resources of a claim as its grant's metadata have them; none: it is
// no claim.
func Names(metadata map[string]string) (names []string) {
	if json.Unmarshal([]byte(metadata[claimKey]), &names) != nil {
		return nil
	}
	return names
}

func listed(names []string) string {
	text, err := json.Marshal(names)
	if err != nil {
		panic(err) // a list of texts cannot fail
	}
	return string(text)
}

// thing is one resource that is asked for: what it is called and what it locks.
type thing struct {
	name  string
	locks []lockkeeper.Lock
}

// resolve finds what a name or a path means: a resource of the table; otherwise a
// path, where it looks like one.
func (au *Author) resolve(name string, mode lockkeeper.Mode, path func(lockkeeper.Mode, string) (lockkeeper.Lock, error)) (thing, error) {
	r, unknown := au.set.Resolve(name)
	if unknown == nil {
		return au.covered(r, mode)
	}
	l, err := path(mode, name)
	if err != nil {
		return thing{}, err
	}
	_, missing := os.Lstat(filepath.Join(au.app.Root.Dir(), filepath.FromSlash(l.Path)))
	if errors.Is(missing, fs.ErrNotExist) && !strings.ContainsAny(name, "/.") && len(au.set.Names()) > 0 {
		return thing{}, unknown // a name with an error in it is more likely than a new file
	}
	return thing{name: l.Path, locks: []lockkeeper.Lock{l}}, nil
}

// covered is what a resource locks: for reading, where the table has no more.
func (au *Author) covered(r resource.Resource, mode lockkeeper.Mode) (thing, error) {
	t, mode := thing{name: r.Name}, min(mode, r.Mode)
	for _, path := range r.Paths {
		l := lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.Node}, Mode: mode}
		if !r.Node {
			var err error
			if l, err = au.fromRoot(mode, path); err != nil {
				return t, err
			}
		}
		t.locks = append(t.locks, l)
	}
	return t, nil
}

func (au *Author) fromRoot(mode lockkeeper.Mode, path string) (lockkeeper.Lock, error) {
	return au.app.Root.Resolve("", path, mode)
}

// resolveAll finds what several names mean, each once.
func (au *Author) resolveAll(names []string, mode lockkeeper.Mode) (things []thing, err error) {
	for _, name := range names {
		t, err := au.resolve(name, mode, au.app.Resolve)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(things, func(o thing) bool { return o.name == t.name }) {
			things = append(things, t)
		}
	}
	return things, nil
}

// mode is the strongest that it is asked for in.
func (t thing) mode() (m lockkeeper.Mode) {
	for _, l := range t.locks {
		m = max(m, l.Mode)
	}
	return m
}

func namesOf(things []thing) (names []string) {
	for _, t := range things {
		names = append(names, t.name)
	}
	return names
}

func locksOf(things []thing) (locks []lockkeeper.Lock) {
	for _, t := range things {
		locks = append(locks, t.locks...)
	}
	return locks
}

// shownAs are the names under which a claim stands in the file: tools compare names
// alone, so a path stands there as every resource that covers it.
func (au *Author) shownAs(name string) []string {
	if _, err := au.set.Resolve(name); err == nil {
		return []string{name}
	}
	if covering := au.set.Covering(name); len(covering) > 0 {
		return covering
	}
	return []string{name}
}
