package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/protect"
)

// FileName is the name of the configuration file at the root of a codebase.
const FileName = protect.ConfigFile

// MultiNode is the Config.Deployment of a codebase that several machines work on;
// the other one is single-node, and empty means not declared.
const MultiNode = "multi-node"

// GrantOptional is the Gate.Grant of the legacy mode; the other one is required.
const GrantOptional = "optional"

// Config is the whole configuration. A field with a key tag is a value of the
// file; doc becomes the comment in the sample and the description in the
// schema. Variables that the source documents name keep those names, the
// others begin with LOCKKEEPER_.
type Config struct {
	Store      string `key:"store" env:"LOCKKEEPER_STORE" doc:"Where locks are kept: the path of an SQLite file, or postgres://user@host/database. A password belongs into ~/.pgpass or PGPASSWORD."`
	Deployment string `key:"deployment" env:"LOCKKEEPER_DEPLOYMENT" enum:"single-node multi-node" doc:"How many machines work on this codebase: single-node or multi-node. Left empty, a PostgreSQL store is refused, because several machines could share it."`
	Space      string `key:"space" pattern:"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" doc:"The id of the space in a PostgreSQL store. Written by init, so that the next machine joins the same one."`

	MaxClaudeConcurrency int           `key:"max_claude_concurrency" env:"MAX_CLAUDE_CONCURRENCY" min:"1" max:"1000" doc:"Agent processes at once."`
	MaxAPIConcurrency    int           `key:"max_api_concurrency" env:"MAX_API_CONCURRENCY" min:"1" max:"1000" doc:"Model API calls at once, apart from the agent processes."`
	MaxTestConcurrency   int           `key:"max_test_concurrency" env:"LOCKKEEPER_MAX_TEST_CONCURRENCY" min:"1" max:"1000" doc:"Test runs at once. More than one only where they do not share a database or a port: each finds a number of its own, from 1, in LOCKKEEPER_SLOT."`
	MaxFixAttempts       int           `key:"max_fix_attempts" env:"MAX_FIX_ATTEMPTS" min:"0" max:"100" doc:"How often failing tests are given back to an agent."`
	MaxCIFixAttempts     int           `key:"max_ci_fix_attempts" env:"MAX_CI_FIX_ATTEMPTS" min:"0" max:"100" doc:"How often failing CI checks are given back to an agent."`
	LockTimeout          time.Duration `key:"lock_timeout" env:"LOCK_TIMEOUT" min:"1s" max:"7d" doc:"How long queued work may be blocked by locks before that counts as one retry."`
	MaxLockRetries       int           `key:"max_lock_retries" env:"MAX_LOCK_RETRIES" min:"0" max:"10000" doc:"Retries after which blocked work goes to the error state."`
	EscalateAfter        time.Duration `key:"escalate_after" env:"LOCKKEEPER_ESCALATE_AFTER" min:"1s" max:"7d" doc:"How long queued work may wait, for locks or for a slot, before it is escalated: it reserves its locks and starts before other queued work."`
	MaxAttempts          int           `key:"max_attempts" env:"LOCKKEEPER_MAX_ATTEMPTS" min:"1" max:"100" doc:"How often queued work whose worker vanished is started before it goes to the error state."`
	ReaperInterval       time.Duration `key:"reaper_interval" env:"LOCKKEEPER_REAPER_INTERVAL" min:"1s" max:"1h" doc:"How often leases that ran out are looked for. A safety net: acquiring does not wait for it."`

	MaxGlobalJobs                  int `key:"max_global_jobs" env:"MAX_GLOBAL_JOBS" min:"1" max:"10000" doc:"Submitted jobs running at once."`
	MaxJobsPerProject              int `key:"max_jobs_per_project" env:"MAX_JOBS_PER_PROJECT" min:"1" max:"10000" doc:"Submitted jobs running at once in one project."`
	MaxConcurrentMapJobsPerProject int `key:"max_concurrent_map_jobs_per_project" env:"MAX_CONCURRENT_MAP_JOBS_PER_PROJECT" min:"1" max:"10000" doc:"Submitted map jobs running at once in one project."`
	MaxCPUJobs                     int `key:"max_cpu_jobs" env:"LOCKKEEPER_MAX_CPU_JOBS" min:"1" max:"10000" doc:"Submitted jobs of class cpu running at once."`

	Roots []string `key:"roots" env:"LOCKKEEPER_ROOTS" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" example:"main" doc:"Names of the roots that this node reaches. In a multi-node deployment queued work names its root, and goes to nodes that reach it. Nodes that share this file and differ set LOCKKEEPER_ROOTS."`

	LocksFile string `key:"locks_file" is:"path" example:".locks/locks.json" doc:"A JSON file, from the root, that shows the claims of authors to tools that know only such a file, and takes up theirs; empty: none."`

	Events Events `key:"events" doc:"How much of the event record is kept: whichever limit is reached first."`

	Gate Gate `key:"gate" doc:"What may be written into the codebase, and how long what it replaced is kept."`

	Agent    Agent    `key:"agent" doc:"Who does the work of a run."`
	Run      Run      `key:"run" doc:"How a run goes, and what of it reaches the codebase."`
	Research Research `key:"research" doc:"How research topics are answered."`
	Links    Links    `key:"links" doc:"What the link checker looks at."`
	Serve    Serve    `key:"serve" doc:"How people and tools reach the server."`
	Sessions Sessions `key:"sessions" doc:"How interactive agents are checked."`

	// Leases has an entry for every policy whose grants expire. Policies lays
	// them over the built-in ones.
	Leases map[string]*Lease `key:"policies" doc:"The times of each policy's leases. A lease can be tuned, never switched off."`

	Resources  Table[Resource]  `key:"resources" doc:"What is locked by a name of its own, and what that covers. lockkeeper init book and lockkeeper init fole write such tables."`
	Operations Table[Operation] `key:"operations" doc:"Which resources an operation needs. One that is not in the table is refused."`

	documents []string          // directories of flow documents by default and in the file
	sources   map[string]string // key to where its value came from; none: default
	places    map[string]string // keys, entries of lists and headings of tables to their places in the file
}

// Events says how long events are kept.
type Events struct {
	Retention time.Duration `key:"retention" env:"LOCKKEEPER_EVENTS_RETENTION" min:"1h" max:"3650d" doc:"Events older than this are dropped."`
	MaxRows   int           `key:"max_rows" env:"LOCKKEEPER_EVENTS_MAX_ROWS" min:"1000" max:"1000000000" doc:"The oldest events beyond this number are dropped."`
}

// Gate says what the gate lets through.
type Gate struct {
	AllowedWritePaths []string      `key:"allowed_write_paths" is:"path" env:"ALLOWED_WRITE_PATHS" doc:"Directories that the gate may write to; \".\" is everything."`
	Grant             string        `key:"grant" enum:"required optional" doc:"Whether a write needs a grant: required, or optional, the legacy mode in which a write without a grant is checked against allowed_write_paths alone."`
	Keep              time.Duration `key:"keep" min:"1h" max:"365d" doc:"How long originals for undo and rescued content are kept."`
}

// Agent says which program does the work of a run.
type Agent struct {
	Name       string        `key:"name" env:"LOCKKEEPER_AGENT" enum:"claude codex gemini command" doc:"The agent: claude, codex, gemini, or command for any other program, which reads its prompt from the standard input."`
	Command    []string      `key:"command" example:"claude" doc:"The program and its first arguments; empty: the program with the agent's name, in PATH."`
	Args       []string      `key:"args" example:"--effort=high" doc:"More arguments, as the program spells them."`
	Model      string        `key:"model" env:"LOCKKEEPER_MODEL" example:"claude-opus-4-1" doc:"The model; empty: the program's own choice."`
	Timeout    time.Duration `key:"timeout" min:"1s" max:"7d" doc:"The longest that one call may take."`
	StallAfter time.Duration `key:"stall_after" min:"1s" max:"1d" doc:"How long an agent may be silent before it is shown as stalled."`
	Attempts   int           `key:"attempts" min:"1" max:"20" doc:"How often a call that failed in passing is made, all in all."`
	Sandbox    string        `key:"sandbox" env:"LOCKKEEPER_SANDBOX" enum:"prefer require off" doc:"Whether agents and tests run in a sandbox, where they see only their workspace, the system and the paths listed here: prefer uses what this machine supports, require refuses to run if the machine cannot deny reads and writes of other files."`
	Caches     []string      `key:"caches" example:"~/.cache/shared" doc:"Directories and files, in addition to the workspace, that agents and tests may read and write."`
	Read       []string      `key:"read" example:"/run/postgresql" doc:"Directories, files and sockets that agents and tests may use, in addition to the system's own, the toolchains in PATH and the caches of package managers."`
	Env        []string      `key:"env" pattern:"^[A-Za-z_][A-Za-z0-9_]*\\*?$" example:"GITHUB_TOKEN" doc:"Environment variables that agents get even though they hold a credential; a name may end in *. An agent always gets those of its own API."`
	Linked     []string      `key:"linked" example:"node_modules" doc:"Folders of dependencies that copies of the codebase share, where a sandbox keeps agents from writing there; otherwise they are copied."`
}

// Run says how a run goes.
type Run struct {
	Locking           string        `key:"locking" enum:"on off" doc:"off is the legacy mode: no locks, no queue, no grants; only gate.allowed_write_paths is checked."`
	SidecarDir        string        `key:"sidecar_dir" env:"SIDECAR_DIR" doc:"Where phases leave their documents, from the root."`
	AnalysisDir       string        `key:"analysis_dir" doc:"Where the screens flow leaves its documents, from the root."`
	DiscoveryGlob     string        `key:"discovery_glob" env:"DISCOVERY_GLOB" doc:"Which files are controllers."`
	DiscoveryExcludes []string      `key:"discovery_excludes" env:"DISCOVERY_EXCLUDES" doc:"Names of those that are not."`
	Screens           string        `key:"screens" doc:"The manifest of the screens flow, from the root."`
	ScreensGate       string        `key:"screens_gate" enum:"off on" doc:"Whether a person agrees to what a controller's screens want changed before its merge starts."`
	LockReads         string        `key:"lock_reads" enum:"auto on off" doc:"Whether phases that only read take read locks: auto does so in the screens flow."`
	TestPathResolver  string        `key:"test_path_resolver" doc:"The test file of a controller; {controller} and {module} stand for its name. Empty: none."`
	SuiteCommand      string        `key:"suite_command" example:"bin/rails test" doc:"The command that runs all tests, for a batch whose test file does not exist. Run by a shell in the copy. Empty: such a batch is not tested."`
	TestCommand       string        `key:"test_command" example:"bin/rails test {path}" doc:"The command that tests a batch; {path} stands for the test files, {controller} for the controller. Run by a shell in the copy. Empty: none."`
	CI                []string      `key:"ci" example:"bin/rubocop" doc:"The commands that a batch has to pass besides, each run by a shell in the copy."`
	CheckEnv          []string      `key:"check_env" pattern:"^[A-Za-z_][A-Za-z0-9_]*\\*?$" example:"DATABASE_URL" doc:"Environment variables that test and CI commands get even though they hold a credential; a name may end in *."`
	CheckTimeout      time.Duration `key:"check_timeout" min:"1s" max:"1d" doc:"The longest that one test or CI command may take."`
	Land              string        `key:"land" enum:"after_verify after_apply" doc:"When changes reach the codebase: after they were tested and verified, or, literally as documented, right after they were made, to be taken back if they do not pass."`
	Review            string        `key:"review" enum:"off risky all" doc:"Which diffs a person looks at before they land."`
	Commit            string        `key:"commit" enum:"on off" doc:"Whether each batch that lands becomes a commit of git."`
	Branch            string        `key:"branch" example:"hardening" doc:"The branch that a run works on; empty: the present one."`
	BudgetUSD         int           `key:"budget_usd" min:"0" max:"1000000" doc:"Dollars that a run may spend; 0: no limit."`
	BudgetTokens      int           `key:"budget_tokens" min:"0" max:"1000000000000" doc:"Tokens that a run may spend; 0: no limit."`
}

// Research says how research topics are answered. The key of the API is in the
// environment, in ANTHROPIC_API_KEY.
type Research struct {
	Method string `key:"method" enum:"ask api" doc:"ask lets a person choose for each topic; api sends all of them to the Messages API."`
	Model  string `key:"model" doc:"The model of the Messages API."`
}

// DocumentDirs lists the directories in which documents of flows are, or may be: as
// configured, as the file says, and by default. A process can set its own environment, so
// the environment adds to the list and takes nothing away.
func (c *Config) DocumentDirs() []string {
	dirs := append([]string{c.Run.SidecarDir, c.Run.AnalysisDir}, c.documents...)
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// Lease holds the times of one policy.
type Lease struct {
	TTL       time.Duration `key:"ttl" min:"1s" max:"1d" doc:"How long a grant lives without a sign of life."`
	Grace     time.Duration `key:"grace" min:"0s" max:"1h" doc:"How long after that it is still left alone."`
	Heartbeat time.Duration `key:"heartbeat" min:"100ms" max:"12h" doc:"How often its holder gives a sign of life; less than ttl."`
}

// Default is the configuration of somebody who set nothing.
func Default() *Config {
	c := &Config{
		Store:                          ".lockkeeper/state.db",
		MaxClaudeConcurrency:           12,
		MaxAPIConcurrency:              20,
		MaxTestConcurrency:             1,
		MaxFixAttempts:                 2,
		MaxCIFixAttempts:               2,
		LockTimeout:                    300 * time.Second,
		MaxLockRetries:                 11,
		EscalateAfter:                  10 * time.Minute,
		MaxAttempts:                    3,
		ReaperInterval:                 30 * time.Second,
		MaxGlobalJobs:                  16,
		MaxJobsPerProject:              8,
		MaxConcurrentMapJobsPerProject: 2,
		MaxCPUJobs:                     4,
		Events:                         Events{Retention: 30 * 24 * time.Hour, MaxRows: 1_000_000},
		Gate: Gate{
			AllowedWritePaths: []string{"app/controllers", "app/views", "app/models", "app/services", "test/"},
			Grant:             "required",
			Keep:              14 * 24 * time.Hour,
		},
		Agent: Agent{Name: "claude", Timeout: time.Hour, StallAfter: 10 * time.Minute, Attempts: 4, Sandbox: "prefer"},
		Run: Run{
			Locking: "on", SidecarDir: ".pipeline", AnalysisDir: ".analysis",
			DiscoveryGlob: "app/controllers/**/*_controller.rb", DiscoveryExcludes: []string{"application_controller"},
			Screens: "screens.json", ScreensGate: "off", LockReads: "auto",
			TestPathResolver: "test/controllers/{controller}_controller_test.rb", CheckTimeout: 30 * time.Minute,
			Land: "after_verify", Review: "off", Commit: "off",
		},
		Research: Research{Method: "ask", Model: "claude-sonnet-4-6"},
		Links:    defaultLinks(),
		Serve:    defaultServe(),
		Sessions: defaultSessions(),
		Leases:   map[string]*Lease{},
		sources:  map[string]string{},
		places:   map[string]string{},
	}
	for name, p := range lockkeeper.Policies() {
		if p.TTL > 0 {
			c.Leases[name] = &Lease{TTL: p.TTL, Grace: p.Grace, Heartbeat: p.Heartbeat}
		}
	}
	c.documents = []string{c.Run.SidecarDir, c.Run.AnalysisDir}
	return c
}

// Policies is the built-in policies with the configured times. The map is the
// caller's.
func (c *Config) Policies() map[string]lockkeeper.Policy {
	set := lockkeeper.Policies()
	for name, l := range c.Leases {
		p := set[name]
		p.TTL, p.Grace, p.Heartbeat = l.TTL, l.Grace, l.Heartbeat
		set[name] = p
	}
	return set
}

// CheckDeployment refuses a store that several machines can share while nobody
// declared whether they do.
func (c *Config) CheckDeployment() error {
	if c.Deployment != "" || !IsPostgres(c.Store) {
		return nil
	}
	return &lockkeeper.InputError{Field: "deployment",
		Reason: fmt.Sprintf("not declared, and the store %s from %s can be shared by several machines", Redact(c.Store), c.source("store")),
		Next:   "write `deployment: single-node` or `deployment: multi-node` into " + FileName + ", or set LOCKKEEPER_DEPLOYMENT"}
}

// RootOf is the root that queued work is on: the named one, or the only one that this
// node reaches. Where several machines work, it must be clear which.
func (c *Config) RootOf(named string) (string, error) {
	if named != "" || c.Deployment != MultiNode {
		return named, nil
	}
	switch len(c.Roots) {
	case 0:
		return "", c.unclear("nobody said which root the work is on, nor which this node reaches", "name one with --root, or set LOCKKEEPER_ROOTS")
	case 1:
		return c.Roots[0], nil
	}
	return "", c.unclear("nobody said which root the work is on, and this node reaches "+strings.Join(c.Roots, ", "), "name one with --root")
}

// CheckReach refuses a worker that has not said what it reaches, where that matters.
func (c *Config) CheckReach() error {
	if c.Deployment != MultiNode || len(c.Roots) > 0 {
		return nil
	}
	return c.unclear("nobody said which roots this node reaches, so no work can be sent to it", "name them with --root, or set LOCKKEEPER_ROOTS")
}

func (c *Config) unclear(what, next string) error {
	return &lockkeeper.InputError{Field: "root", Reason: what + "; deployment multi-node comes from " + c.source("deployment"), Next: next}
}

// Value is one configured value as it is shown to people.
type Value struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Source  string `json:"source"`            // "default", "lockkeeper.yaml:12", "env LOCK_TIMEOUT", "flag --store"
	Allowed string `json:"allowed,omitempty"` // what it may be; empty: any text
}

// FromDefault is the source of a value that nobody set.
const FromDefault = "default"

// Source is where the value of a key came from, as Values says it.
func (c *Config) Source(key string) string {
	for _, v := range c.Values() {
		if v.Key == key {
			return v.Source
		}
	}
	return ""
}

// Values lists every value by key, passwords hidden. In the rows of tables those that
// nobody set say nothing, and are left out.
func (c *Config) Values() []Value {
	fields, tables := fieldsOf(c), tablesOf(c)
	list := make([]Value, 0, len(fields))
	for _, f := range fields {
		group, _, _ := strings.Cut(f.key, ".")
		if _, set := c.sources[f.key]; !set && tables[group] != nil {
			continue
		}
		list = append(list, Value{Key: f.key, Value: f.shown(), Source: c.source(f.key), Allowed: f.allowed()})
	}
	slices.SortFunc(list, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	return list
}

func (c *Config) source(key string) string {
	if s, ok := c.sources[key]; ok {
		return s
	}
	return FromDefault
}
