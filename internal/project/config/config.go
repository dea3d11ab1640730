package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project/protect"
)

// FileName is the name of the configuration file at the root of a codebase.
const FileName = protect.ConfigFile

// MultiNode is the Config.Deployment of a codebase that several machines work on. The other
// value is single-node; empty means not declared.
const MultiNode = "multi-node"

// Rails is the Config.Layout of a Rails application. The other value is "plain".
const Rails = "rails"

// GrantOptional is the Gate.Grant of the legacy mode. The other value is "required".
const GrantOptional = "optional"

// Config is the whole configuration. A field with a key tag is a value of the file, with its
// default, limits and environment variable. doc becomes the comment in the sample and the
// description in schema and reference. rails is the default in that layout. also is a second name of the key in the file. Variables that the source documents name have those
// names, the others begin with LOCKKEEPER_.
type Config struct {
	Store      string `key:"store" env:"LOCKKEEPER_STORE" default:".lockkeeper/state.db" doc:"Where locks are stored: the path of an SQLite file, or postgres://user@host/database. Put a password into ~/.pgpass or PGPASSWORD."`
	Deployment string `key:"deployment" env:"LOCKKEEPER_DEPLOYMENT" enum:"single-node multi-node" doc:"How many machines work on this codebase: single-node or multi-node. Required for a PostgreSQL store, which several machines could share."`
	Space      string `key:"space" pattern:"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" doc:"The id of the space in a PostgreSQL store. init writes it, so that the next machine joins the same space."`

	Layout string `key:"layout" enum:"plain rails" default:"plain" doc:"Whose defaults apply: plain is any codebase, rails is a Rails application. init writes it. In a file of an earlier version it is missing, and means rails."`

	MaxClaudeConcurrency int           `key:"max_claude_concurrency" env:"MAX_CLAUDE_CONCURRENCY" min:"1" max:"1000" default:"12" doc:"Maximum number of agent processes at once."`
	MaxAPIConcurrency    int           `key:"max_api_concurrency" env:"MAX_API_CONCURRENCY" min:"1" max:"1000" default:"20" doc:"Maximum number of model API calls at once. Agent processes do not count."`
	MaxTestConcurrency   int           `key:"max_test_concurrency" env:"LOCKKEEPER_MAX_TEST_CONCURRENCY" min:"1" max:"1000" default:"1" doc:"Maximum number of test runs at once. Use more than 1 only if test runs do not share a database or a port. Each run gets its own number, from 1, in LOCKKEEPER_SLOT."`
	MaxFixAttempts       int           `key:"max_fix_attempts" env:"MAX_FIX_ATTEMPTS" min:"0" max:"100" default:"2" doc:"How many times an agent may try to fix failing tests."`
	MaxCIFixAttempts     int           `key:"max_ci_fix_attempts" env:"MAX_CI_FIX_ATTEMPTS" min:"0" max:"100" default:"2" doc:"How many times an agent may try to fix failing CI checks."`
	LockTimeout          time.Duration `key:"lock_timeout" env:"LOCK_TIMEOUT" min:"1s" max:"7d" default:"5m" doc:"How long queued work can be blocked by the same locks before this counts as one retry."`
	MaxLockRetries       int           `key:"max_lock_retries" env:"MAX_LOCK_RETRIES" min:"0" max:"10000" default:"11" doc:"Number of retries after which blocked work fails."`
	EscalateAfter        time.Duration `key:"escalate_after" env:"LOCKKEEPER_ESCALATE_AFTER" min:"1s" max:"7d" default:"10m" doc:"How long queued work waits for locks or a slot before it is escalated. Escalated work starts before other queued work, and reserves its locks if another request overtakes it."`
	MaxAttempts          int           `key:"max_attempts" env:"LOCKKEEPER_MAX_ATTEMPTS" min:"1" max:"100" default:"3" doc:"How many times queued work is started if its worker disappears. Then it fails."`
	ReaperInterval       time.Duration `key:"reaper_interval" env:"LOCKKEEPER_REAPER_INTERVAL" min:"1s" max:"1h" default:"30s" doc:"How often expired leases are searched for. This is a safety net: acquiring a lock does not wait for it."`

	MaxGlobalJobs                  int `key:"max_global_jobs" also:"maxGlobalJobs" env:"MAX_GLOBAL_JOBS" min:"1" max:"10000" default:"16" doc:"Maximum number of submitted jobs running at once."`
	MaxJobsPerProject              int `key:"max_jobs_per_project" also:"maxJobsPerProject" env:"MAX_JOBS_PER_PROJECT" min:"1" max:"10000" default:"8" doc:"Maximum number of submitted jobs running at once in one project."`
	MaxConcurrentMapJobsPerProject int `key:"max_concurrent_map_jobs_per_project" also:"maxConcurrentMapJobsPerProject" env:"MAX_CONCURRENT_MAP_JOBS_PER_PROJECT" min:"1" max:"10000" default:"2" doc:"Maximum number of submitted map jobs running at once in one project."`
	MaxCPUJobs                     int `key:"max_cpu_jobs" env:"LOCKKEEPER_MAX_CPU_JOBS" min:"1" max:"10000" default:"4" doc:"Maximum number of submitted jobs of class cpu running at once."`

	JobPolicy string `key:"job_policy" env:"LOCKKEEPER_JOB_POLICY" enum:"agent session dal tidy author person" default:"agent" doc:"The policy of submitted jobs that name neither a policy nor a resource. Jobs on resources have the policy dal."`

	Roots []string `key:"roots" env:"LOCKKEEPER_ROOTS" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" example:"main" doc:"Names of the roots that this machine reaches. In a multi-node deployment queued work names its root and goes to machines that reach it. Machines that share this file but reach different roots set LOCKKEEPER_ROOTS."`

	Labels []string `key:"labels" env:"LOCKKEEPER_LABELS" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" example:"gpu" doc:"What this machine has, for calls of a run that need it (run.needs). Machines that share this file set LOCKKEEPER_LABELS."`

	LocksFile string `key:"locks_file" is:"path" example:".locks/locks.json" doc:"A JSON lock file, relative to the root, for tools that know no other locks. It shows the claims of authors, and its other entries count as claims. Empty: none."`

	Events Events `key:"events" doc:"How much of the event log is kept. The limit that is reached first applies."`

	Gate Gate `key:"gate" doc:"What may be written into the codebase, and how long originals are kept."`

	Agent    Agent    `key:"agent" doc:"The agent that does the work of a run."`
	Run      Run      `key:"run" doc:"How a run works, and when its changes land."`
	Research Research `key:"research" doc:"How research topics are answered."`
	Links    Links    `key:"links" doc:"What the link checker checks."`
	Serve    Serve    `key:"serve" doc:"How people and tools reach the server."`
	Sessions Sessions `key:"sessions" doc:"How interactive agents are checked."`

	// Leases has an entry for every policy whose grants expire. Policies returns them in place of
	// the built-in times.
	Leases map[string]*Lease `key:"policies" doc:"The lease times of each policy. Leases cannot be switched off."`

	Resources  Table[Resource]  `key:"resources" doc:"Named resources and the files they cover. lockkeeper init book and lockkeeper init fole write such tables."`
	Operations Table[Operation] `key:"operations" doc:"The resources that each operation needs. An operation that is not in the table is refused."`

	LinkExceptions Table[LinkException] `key:"link_exceptions" doc:"References that the link checker leaves out, with the reason. The headings are names of your choice."`

	documents []string          // directories of flow documents, by default and in the file
	sources   map[string]string // where the value of each key came from; missing: default
	places    map[string]string // positions in the file of keys, list entries and table headings
}

// Events says how long events are stored.
type Events struct {
	Retention time.Duration `key:"retention" env:"LOCKKEEPER_EVENTS_RETENTION" min:"1h" max:"3650d" default:"30d" doc:"Events older than this are deleted."`
	MaxRows   int           `key:"max_rows" env:"LOCKKEEPER_EVENTS_MAX_ROWS" min:"1000" max:"1000000000" default:"1000000" doc:"Maximum number of events. The oldest are deleted first."`
}

type Gate struct {
	AllowedWritePaths []string      `key:"allowed_write_paths" is:"path" env:"ALLOWED_WRITE_PATHS" default:"." rails:"app/controllers,app/views,app/models,app/services,test/" doc:"Directories and files that the gate may write to. \".\" is everything. init lists those of the codebase."`
	Grant             string        `key:"grant" enum:"required optional" default:"required" doc:"Whether a write needs a grant. optional is the legacy mode: a write without a grant is checked only against allowed_write_paths."`
	Keep              time.Duration `key:"keep" min:"1h" max:"365d" default:"14d" doc:"How long originals for undo, and content that could not land, are kept."`
	KeepFileMB        int           `key:"keep_file_mb" min:"1" max:"1000000" default:"1024" doc:"The largest file, in MB, that the rescue shelf keeps and that a run lands. For a larger file, only a note is kept."`
	KeepTotalMB       int           `key:"keep_total_mb" min:"1" max:"100000000" default:"8192" doc:"How much the rescue shelf keeps at most, in MB. It never takes more than half of the free disk space for one file."`
}

// Agent configures the program that does the work of a run.
type Agent struct {
	Name       string        `key:"name" env:"LOCKKEEPER_AGENT" enum:"AGENTS" default:"claude" doc:"The agent. command is any other program, which reads its prompt from standard input."`
	Command    []string      `key:"command" example:"claude" doc:"The program and its first arguments. Empty: the program with the agent's name in PATH."`
	Args       []string      `key:"args" example:"--effort=high" doc:"Additional arguments for the program."`
	Model      string        `key:"model" env:"LOCKKEEPER_MODEL" example:"claude-opus-4-1" doc:"The model. Empty: the program's default."`
	Timeout    time.Duration `key:"timeout" min:"1s" max:"7d" default:"1h" doc:"Maximum time of one call."`
	StallAfter time.Duration `key:"stall_after" min:"1s" max:"1d" default:"10m" doc:"How long an agent can be silent before it is shown as stalled."`
	Attempts   int           `key:"attempts" min:"1" max:"20" default:"4" doc:"Maximum number of calls, including the first, if calls fail temporarily."`
	Sandbox    string        `key:"sandbox" env:"LOCKKEEPER_SANDBOX" enum:"prefer require off" default:"prefer" doc:"Whether agents and tests run in a sandbox, where they see only their workspace, the system and the paths listed here. prefer uses what this machine supports. require fails if this machine cannot deny access to other files."`
	Caches     []string      `key:"caches" example:"~/.cache/shared" doc:"Additional directories and files that agents and tests may read and write."`
	Read       []string      `key:"read" example:"/run/postgresql" doc:"Additional directories, files and sockets that agents and tests may read. The system, the toolchains in PATH and the caches of package managers are always readable."`
	Env        []string      `key:"env" pattern:"^[A-Za-z_][A-Za-z0-9_]*\\*?$" example:"GITHUB_TOKEN" doc:"Environment variables that agents get although they contain a credential. A name can end in *. An agent always gets the variables of its own API."`
	Linked     []string      `key:"linked" example:"node_modules" doc:"Dependency directories that workspaces share with the codebase if a sandbox prevents agents from writing there. Otherwise they are copied."`
}

type Run struct {
	Locking           string        `key:"locking" enum:"on off" default:"on" doc:"Whether runs use locks. off is the legacy mode: no locks, no queue, no grants. Only gate.allowed_write_paths is checked."`
	SidecarDir        string        `key:"sidecar_dir" env:"SIDECAR_DIR" default:".pipeline" doc:"Directory for the documents of phases, relative to the root."`
	AnalysisDir       string        `key:"analysis_dir" default:".analysis" doc:"Directory for the documents of the screens flow, relative to the root."`
	DiscoveryGlob     string        `key:"discovery_glob" env:"DISCOVERY_GLOB" rails:"app/controllers/**/*_controller.rb" example:"app/controllers/**/*_controller.rb" doc:"Pattern of the controller files, for the flow controllers. Empty: a run needs a plan of tasks."`
	DiscoveryExcludes []string      `key:"discovery_excludes" env:"DISCOVERY_EXCLUDES" rails:"application_controller" example:"application_controller" doc:"Names of controllers to leave out."`
	Screens           string        `key:"screens" default:"screens.json" doc:"The manifest of the screens flow, relative to the root."`
	ScreensGate       string        `key:"screens_gate" enum:"off on" default:"off" doc:"Whether a person must approve the changes proposed for a controller's screens before its merge starts."`
	LockReads         string        `key:"lock_reads" enum:"auto on off" default:"auto" doc:"Whether phases that only read acquire read locks. auto: only in the screens flow."`
	TestPathResolver  string        `key:"test_path_resolver" rails:"test/controllers/{controller}_controller_test.rb" example:"test/controllers/{controller}_controller_test.rb" doc:"The test file of a controller. {controller} and {module} are replaced by its name. Empty: none."`
	SuiteCommand      string        `key:"suite_command" example:"make test" doc:"The command that runs all tests, for a batch whose test file does not exist. A shell runs it in the workspace. Empty: such a batch is not tested."`
	TestCommand       string        `key:"test_command" example:"make test" doc:"The command that tests a batch. {path} is replaced by the test files, {controller} by the controller. A shell runs it in the workspace. Empty: none."`
	CI                []string      `key:"ci" example:"make lint" doc:"Additional commands that a batch must pass. A shell runs each in the workspace."`
	CheckEnv          []string      `key:"check_env" pattern:"^[A-Za-z_][A-Za-z0-9_]*\\*?$" example:"DATABASE_URL" doc:"Environment variables that test and CI commands get although they contain a credential. A name can end in *."`
	CheckTimeout      time.Duration `key:"check_timeout" min:"1s" max:"1d" default:"30m" doc:"Maximum time of one test or CI command."`
	Baseline          string        `key:"baseline" enum:"ask continue stop off" default:"ask" doc:"What a run does if the tests fail on the unchanged tree, before its first batch. ask: ask the person at the terminal; without one, continue, unless a program of the tests is missing. stop: start no batch. off: do not run the tests then, so every failure of a batch is its own."`
	Verify            string        `key:"verify" enum:"on off" default:"on" doc:"Whether an agent compares each tested change with the original before it lands. This is one more call for each batch. off: tests and CI commands decide alone."`
	Land              string        `key:"land" enum:"after_verify after_apply" default:"after_verify" doc:"When changes land: after they are tested and verified, or as soon as they are applied. In the second case they are undone if their tests or verification fail."`
	Review            string        `key:"review" enum:"off risky all" default:"off" doc:"Which diffs a person must review before they land. risky: high effort, more than 10 files, a gap, a deleted file, a file too long to show, or in the controllers flow a file that other controllers use."`
	Commit            string        `key:"commit" enum:"on off" default:"off" doc:"Whether each batch that lands becomes a git commit."`
	Push              string        `key:"push" enum:"on off" default:"off" doc:"Whether a run pushes each of its commits to the branch's upstream, so that clones on other machines can follow. Needs run.commit: on."`
	Remote            string        `key:"remote" example:"origin" doc:"The git remote through which a run sends calls to other machines. Empty: that of the current branch, else origin, else the only one."`
	Needs             []string      `key:"needs" pattern:"^[a-z_]+=[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" example:"test=postgres" doc:"Labels that a machine needs for the calls of a phase, as phase=label. Calls of that phase run only on machines with all of them."`
	Branch            string        `key:"branch" example:"hardening" doc:"The branch that a run works on. Empty: the current branch."`
	Workspaces        string        `key:"workspaces" env:"LOCKKEEPER_WORKSPACES" pattern:"^(/|~/).*" example:"/scratch/lockkeeper" doc:"Directory for the workspaces of agents, outside the codebase: an absolute path, or one below ~. Its disk needs room for a copy of the codebase, and must support overlays, or else each agent gets a copy. Empty: the user's state directory, below XDG_STATE_HOME."`
	BudgetUSD         int           `key:"budget_usd" min:"0" max:"1000000" doc:"Maximum cost of a run in dollars. 0: no limit."`
	BudgetTokens      int           `key:"budget_tokens" min:"0" max:"1000000000000" doc:"Maximum number of tokens of a run. 0: no limit."`
}

// Research says how research topics are answered. The key of the API is in the
// environment, in ANTHROPIC_API_KEY.
type Research struct {
	Method string `key:"method" enum:"ask api" default:"ask" doc:"Who answers research topics. ask: a person chooses for each topic. api: all go to the Messages API."`
	Model  string `key:"model" default:"claude-sonnet-4-6" doc:"The model for the Messages API."`
}

// Links configures the link checker.
type Links struct {
	Documents   []string      `key:"documents" default:"README.md,docs/INDEX.md" doc:"Documents that are always checked, relative to the root. A missing one is reported."`
	Optional    []string      `key:"documents_if_present" default:"docs/BUILD_HISTORY.md" doc:"Documents that are checked if they exist."`
	Exclude     []string      `key:"exclude" default:"node_modules,vendor" doc:"Documents and directories that --deep skips. As in .gitignore: a name at any depth or a path from the root, with wildcards, covering everything below."`
	Ignore      []string      `key:"ignore" none:"ok" default:"http://localhost*,http://127.0.0.1*" doc:"Targets that are not checked: names, paths from the root or URLs, with the same patterns. An empty list checks everything."`
	Lenient     []string      `key:"informational" none:"ok" default:"archive,archived" doc:"Documents whose findings are informational: they do not make the check fail. The same patterns as in exclude."`
	Sites       []string      `key:"sites" is:"path" example:"www/content" doc:"Directories of a site's pages and files. A link with a leading slash can mean them as well as the root, and a page without its extension."`
	URLTimeout  time.Duration `key:"url_timeout" min:"1s" max:"5m" default:"10s" doc:"Maximum time of one request of --check-urls."`
	URLsAtOnce  int           `key:"urls_at_once" min:"1" max:"256" default:"16" doc:"Maximum number of requests of --check-urls at once."`
	URLsPerHost int           `key:"urls_per_host" min:"1" max:"64" default:"2" doc:"Maximum number of requests of --check-urls at once to one host."`
}

// A LinkException names references that the link checker leaves out. Without documents it holds
// in all of them, without targets for all targets.
type LinkException struct {
	Documents []string `key:"documents" doc:"Patterns of the documents, as in links.exclude. Empty: all."`
	Targets   []string `key:"targets" doc:"Patterns of the targets: as written, as paths from the root, or URLs. Empty: all."`
	Reason    string   `key:"reason" doc:"Why these references are left out. Required."`
}

// Serve configures the server. Certificates are given on the command line.
type Serve struct {
	Listen       string        `key:"listen" env:"LOCKKEEPER_LISTEN" pattern:"^[^ ]*:[0-9]{1,5}$" default:"127.0.0.1:0" doc:"The address and port the server listens on. Port 0: any free port. Addresses other than 127.0.0.1 need TLS, or a flag of lockkeeper serve."`
	AllowHosts   []string      `key:"allow_hosts" env:"LOCKKEEPER_ALLOW_HOSTS" pattern:"^[A-Za-z0-9.-]+(:[0-9]{1,5})?$" example:"locks.example.org" doc:"Additional host names of the server, such as that of a proxy in front of it."`
	LocalClients string        `key:"local_clients" enum:"outside unseen any" default:"outside" doc:"Which clients on this machine can connect. outside: those that the server sees outside every sandbox of Lockkeeper. unseen: also those whose process it cannot see. any: also agents in a sandbox. All of them need a token or a session."`
	Session      time.Duration `key:"session" min:"1m" max:"90d" default:"7d" doc:"How long a browser login lasts."`
	Webhook      string        `key:"webhook" env:"LOCKKEEPER_WEBHOOK" pattern:"^https?://[^ ]+$" example:"https://hooks.example.org/lockkeeper" doc:"A URL that gets a POST with JSON when more decisions wait for a person than before. If it is secret, set LOCKKEEPER_WEBHOOK instead."`
}

// Sessions configures how interactive agents are checked.
type Sessions struct {
	ReadOnly  string `key:"read_only" enum:"off on" default:"off" doc:"Whether the files that a session holds are read-only on disk except while its own calls run. Editors then warn, and programs without hooks fail. The permissions are restored when the session releases the files."`
	Uncovered string `key:"uncovered" env:"LOCKKEEPER_UNCOVERED" enum:"keep put_back" default:"keep" doc:"What happens if a command of one session changes a file that another session holds. keep shows the change and keeps a copy. put_back also restores the file if the text of the command proves that it made the change. A person's edit is never reverted."`
}

// PutBack is the value of Sessions.Uncovered that restores files.
const PutBack = "put_back"

// On is the value of Sessions.ReadOnly that makes held files read-only.
const On = "on"

// A Resource is a name for files that are locked together. Its files may contain the
// placeholders of its name, such as {nn}.
type Resource struct {
	Files []string `key:"files" is:"path" doc:"The files it covers, relative to the root. A directory ends in a slash. Placeholders of the name, or of the node, can be used: {nn} is a number of two or more digits."`
	Node  string   `key:"node" pattern:"^[a-z]+/\\{[a-z]+\\}(/[a-z]+/\\{[a-z]+\\})*$" doc:"Makes it a node in a tree of projects, maps and sketches, such as project/{project}/map/{map}."`
	Mode  string   `key:"mode" enum:"write read" doc:"How a claim locks it: write (default) is exclusive, read is shared with other readers."`
}

// An Operation lists the locks that an operation needs.
type Operation struct {
	About      string   `key:"about" doc:"A description for people."`
	Prompt     int      `key:"prompt" min:"0" max:"9999" doc:"A prompt number that also names the operation. 0: none."`
	Read       []string `key:"read" doc:"Resources it reads."`
	Write      []string `key:"write" doc:"Resources it writes."`
	ReadAll    []string `key:"read_all" doc:"Nodes it reads with everything below them."`
	WriteAll   []string `key:"write_all" doc:"Nodes it writes with everything below them."`
	MayWrite   []string `key:"may_write" doc:"Resources it writes in some cases. The caller names them."`
	Several    []string `key:"several" doc:"Resources of which the caller must name two or more, because the operation works between them."`
	Unlocked   string   `key:"unlocked" doc:"Why it needs no lock. Required if it has no locks."`
	MinObjects int      `key:"min_objects" min:"0" max:"1000000000" doc:"Minimum number of objects. 0: no limit."`
	MaxObjects int      `key:"max_objects" min:"0" max:"1000000000" doc:"Maximum number of objects. 0: no limit."`
	Beyond     string   `key:"beyond" doc:"The operation to use for more objects than max_objects."`
	Approval   string   `key:"approval" enum:"none required" doc:"Whether a person must approve each time, on a terminal."`
}

// ApprovalRequired is the Approval of an operation that a person must approve. Empty means none.
const ApprovalRequired = "required"

// DocumentDirs lists the directories that may contain documents of flows: as configured, as in
// the file, and by default. A process can set its own environment, so the environment only
// adds to the list.
func (c *Config) DocumentDirs() []string {
	dirs := append([]string{c.Run.SidecarDir, c.Run.AnalysisDir}, c.documents...)
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// Lease holds the times of one policy.
type Lease struct {
	TTL       time.Duration `key:"ttl" min:"1s" max:"1d" doc:"How long a grant lasts without renewal."`
	Grace     time.Duration `key:"grace" min:"0s" max:"1h" doc:"How long an expired grant is still not released."`
	Heartbeat time.Duration `key:"heartbeat" min:"100ms" max:"12h" doc:"How often the holder renews the grant. Must be less than ttl."`
}

// Default returns the configuration without a file, environment or flags.
func Default() *Config {
	c, _ := defaults()
	return c
}

// defaults returns a Config with the built-in defaults, and its fields.
func defaults() (*Config, []field) {
	c := &Config{Leases: map[string]*Lease{}, sources: map[string]string{}, places: map[string]string{}}
	for name, p := range lockkeeper.Policies() {
		if p.TTL > 0 {
			c.Leases[name] = &Lease{TTL: p.TTL, Grace: p.Grace, Heartbeat: p.Heartbeat}
		}
	}
	fields := fieldsOf(c)
	for _, f := range fields {
		switch {
		case f.initial == "":
			continue
		case f.value.Kind() == reflect.String: // compiling its pattern would cost every process time; TestDefaults checks it
			f.value.SetString(f.initial)
			continue
		}
		if err := f.set(f.initial); err != nil {
			panic(fmt.Sprintf("config: default %q of %s: %v", f.initial, f.key, err))
		}
	}
	c.documents = []string{c.Run.SidecarDir, c.Run.AnalysisDir}
	return c, fields
}

// Policies returns the built-in policies with the configured times. The caller may change the
// map.
func (c *Config) Policies() map[string]lockkeeper.Policy {
	set := lockkeeper.Policies()
	for name, l := range c.Leases {
		p := set[name]
		p.TTL, p.Grace, p.Heartbeat = l.TTL, l.Grace, l.Heartbeat
		set[name] = p
	}
	return set
}

// CheckDeployment refuses a store that several machines can share if the deployment is not
// declared.
func (c *Config) CheckDeployment() error {
	if c.Deployment != "" || !IsPostgres(c.Store) {
		return nil
	}
	return &lockkeeper.InputError{Field: "deployment",
		Reason: fmt.Sprintf("not declared, and the store %s from %s can be shared by several machines", Redact(c.Store), c.Source("store")),
		Next:   "write `deployment: single-node` or `deployment: multi-node` into " + FileName + ", or set LOCKKEEPER_DEPLOYMENT"}
}

// RootOf returns the root of queued work: the named one, or the only one that this node reaches.
// In a multi-node deployment there must be exactly one.
func (c *Config) RootOf(named string) (string, error) {
	if named != "" || c.Deployment != MultiNode {
		return named, nil
	}
	switch len(c.Roots) {
	case 0:
		return "", c.unclear("no root was given, and this node lists no roots that it reaches", "name one with --root, or set LOCKKEEPER_ROOTS")
	case 1:
		return c.Roots[0], nil
	}
	return "", c.unclear("no root was given, and this node reaches "+strings.Join(c.Roots, ", "), "name one with --root")
}

// CheckReach refuses a worker of a multi-node deployment that names no roots.
func (c *Config) CheckReach() error {
	if c.Deployment != MultiNode || len(c.Roots) > 0 {
		return nil
	}
	return c.unclear("this node lists no roots that it reaches, so no work can be sent to it", "list them with --root, or set LOCKKEEPER_ROOTS")
}

func (c *Config) unclear(what, next string) error {
	return &lockkeeper.InputError{Field: "root", Reason: what + "; deployment multi-node comes from " + c.Source("deployment"), Next: next}
}

// A Value is one configured value as people see it.
type Value struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Source  string `json:"source"`            // "default", "lockkeeper.yaml:12", "env LOCK_TIMEOUT", "flag --store"
	Allowed string `json:"allowed,omitempty"` // allowed values; empty: any text
}

// FromDefault is the source of a default value.
const FromDefault = "default"

// Get returns the value of a key. It panics if the key is unknown.
func (c *Config) Get(key string) any {
	for _, f := range fieldsOf(c) {
		if f.key == key {
			return f.value.Interface()
		}
	}
	return nil
}

// Values lists all values by key, with passwords hidden. It leaves out unset values in the rows
// of tables.
func (c *Config) Values() []Value {
	fields, tables := fieldsOf(c), tablesOf(c)
	list := make([]Value, 0, len(fields))
	for _, f := range fields {
		group, _, _ := strings.Cut(f.key, ".")
		if _, set := c.sources[f.key]; !set && tables[group] != nil {
			continue
		}
		list = append(list, Value{Key: f.key, Value: f.shown(), Source: c.Source(f.key), Allowed: f.allowed()})
	}
	slices.SortFunc(list, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// Source returns where the value of a key came from.
func (c *Config) Source(key string) string {
	if s, ok := c.sources[key]; ok {
		return s
	}
	return FromDefault
}
