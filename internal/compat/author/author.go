package author

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/bookfile"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/git"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
)

// The policies of claims.
const (
	policyInstance = "author" // the policy of claims by agent instances and foreign tools
	policyPerson   = "person"
)

// Keys of a claim in the metadata of its grant.
const (
	claimKey    = "claim"     // the claimed resources, as a JSON list
	whoKey      = "who"       // the person behind the claim
	sessionKey  = "session"   // the session that made the claim
	foreignKey  = "foreign"   // the site of the locks file the claim was imported from
	stampKey    = "timestamp" // the time in the imported entry
	instanceKey = "instance"  // the instance in the imported entry
)

// An Author makes and ends claims on one codebase.
type Author struct {
	app        *project.Project
	set        *resource.Set
	file       *bookfile.File // nil if claims are not mirrored
	mark       bookfile.Mark
	site       string // name of the locks file, unique among all machines
	staleAfter time.Duration
	git        *git.WorkTree
}

// Open reads the table of resources and opens the locks file. env is the environment of
// the git commands that find uncommitted changes.
func Open(a *project.Project, env []string) (*Author, error) {
	set, err := resource.Of(a.Config)
	if err != nil {
		return nil, err
	}
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	au := &Author{app: a, set: set, mark: bookfile.Mark(a.Space), staleAfter: a.Config.Policies()[policyInstance].TTL,
		git: git.NewWorkTree(a.Root.Dir(), a.Root.Dir(), env)}
	if name := a.Config.LocksFile; name != "" {
		au.file = bookfile.Open(a.Root.Dir(), filepath.FromSlash(name))
		au.site = self.Host + ":" + au.file.Path()
	}
	return au, nil
}

// StaleAfter returns how long a claim may show no activity before it is stale.
func (au *Author) StaleAfter() time.Duration { return au.staleAfter }

// Prompt returns the resources that a prompt of the table works on.
func (au *Author) Prompt(name string, of []string) ([]string, error) {
	return au.set.Prompt(name, of...)
}

// Names returns the resources of a claim from its grant's metadata, or nil if the grant is
// not a claim.
func Names(metadata map[string]string) (names []string) {
	if json.Unmarshal([]byte(metadata[claimKey]), &names) != nil {
		return nil
	}
	return names
}

func encodeNames(names []string) string {
	text, err := json.Marshal(names)
	if err != nil {
		panic(err) // a list of strings always encodes
	}
	return string(text)
}

// A target is one requested resource and the locks it needs.
type target struct {
	name  string
	locks []lockkeeper.Lock
}

// resolve returns the target for a name or a path. A resource of the table takes
// precedence over a path.
func (au *Author) resolve(name string, mode lockkeeper.Mode, path func(lockkeeper.Mode, string) (lockkeeper.Lock, error)) (target, error) {
	r, unknown := au.set.Resolve(name)
	if unknown == nil {
		return au.covered(r, mode)
	}
	l, err := path(mode, name)
	if err != nil {
		return target{}, err
	}
	_, missing := os.Lstat(filepath.Join(au.app.Root.Dir(), filepath.FromSlash(l.Path)))
	if errors.Is(missing, fs.ErrNotExist) && !strings.ContainsAny(name, "/.") && len(au.set.Names()) > 0 {
		return target{}, unknown // a typo is more likely than a new file
	}
	return target{name: l.Path, locks: []lockkeeper.Lock{l}}, nil
}

// covered returns the locks of a resource, at most in the resource's own mode.
func (au *Author) covered(r resource.Resource, mode lockkeeper.Mode) (target, error) {
	t, mode := target{name: r.Name}, min(mode, r.Mode)
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

// resolveAll resolves names without duplicates.
func (au *Author) resolveAll(names []string, mode lockkeeper.Mode, path func(lockkeeper.Mode, string) (lockkeeper.Lock, error)) (targets []target, err error) {
	for _, name := range names {
		t, err := au.resolve(name, mode, path)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(targets, func(o target) bool { return o.name == t.name }) {
			targets = append(targets, t)
		}
	}
	return targets, nil
}

func (t target) mode() (m lockkeeper.Mode) {
	for _, l := range t.locks {
		m = max(m, l.Mode)
	}
	return m
}

func namesOf(targets []target) (names []string) {
	for _, t := range targets {
		names = append(names, t.name)
	}
	return names
}

func locksOf(targets []target) (locks []lockkeeper.Lock) {
	for _, t := range targets {
		locks = append(locks, t.locks...)
	}
	return locks
}

// fileNames returns the names of a claim in the locks file. Foreign tools compare names
// only, so a path appears as every resource that covers it.
func (au *Author) fileNames(name string) []string {
	if _, err := au.set.Resolve(name); err == nil {
		return []string{name}
	}
	if covering := au.set.Covering(name); len(covering) > 0 {
		return covering
	}
	return []string{name}
}

// InstanceVariable is the environment variable that names the instance of a session.
const InstanceVariable = "LOCKKEEPER_INSTANCE"

// An Instance is a session of an agent or a person that makes claims.
type Instance struct {
	ID      string // such as CLI-12345, the same for all claims of a session
	Who     string // the person's display name; empty for an agent
	Process *lockkeeper.Process
	Agent   string // the agent's name; empty for a person
	Named   bool   // the ID was given explicitly, so several sessions may share it
}

// InstanceOf returns the instance of the caller: the agent in env, or else the person. The
// ID is named, or the value of InstanceVariable, or derived from the process of the agent
// or the terminal.
func InstanceOf(env []string, agent, named string, person lockkeeper.Actor) (Instance, error) {
	i := Instance{ID: named, Agent: agent}
	if agent == "" {
		i.Who = person.Name
	}
	kind := "CLI"
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case name == InstanceVariable && named == "":
			i.ID = value
		case name == "CLAUDE_CODE_ENTRYPOINT" && strings.Contains(value, "desktop"):
			kind = "Desktop"
		}
	}
	i.Named = i.ID != ""
	anchor, err := process.Anchor(env)
	switch {
	case errors.Is(err, process.ErrOutside) && i.Named:
		anchor, err = process.Identify(1) // the claims last at most as long as the container
	case errors.Is(err, process.ErrOutside):
		err = lockkeeper.WithNext(err, "name the session, the same for all its claims: set "+InstanceVariable+", or use --instance ID")
	}
	if err != nil {
		return Instance{}, err
	}
	if i.Process = &anchor; !i.Named {
		i.ID = fmt.Sprintf("%s-%d", kind, anchor.PID)
	}
	return i, nil
}

func (i Instance) policy() string {
	if i.Agent != "" {
		return policyInstance
	}
	return policyPerson
}

func (i Instance) actor(person lockkeeper.Actor) lockkeeper.Actor {
	if i.Agent != "" {
		return lockkeeper.Actor{Name: i.ID + " (" + i.Agent + ")", Kind: lockkeeper.ActorAgent}
	}
	return person
}

// Has reports whether a claim belongs to this session. A process that reuses the PID of an
// earlier one is a different session, unless the ID was given explicitly.
func (i Instance) Has(s GrantStatus) bool {
	return s.Instance == i.ID && !s.Foreign && (i.Named || s.session == i.session())
}

// session identifies the process of the session, because two sessions can have the same ID.
func (i Instance) session() string { return sessionOf(*i.Process) }

func sessionOf(p lockkeeper.Process) string {
	return fmt.Sprintf("%s/%s/%d/%d", p.Boot, p.PIDNS, p.PID, p.Start)
}
