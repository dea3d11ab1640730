package config

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper"
)

// write creates a lockkeeper.yaml for the test and returns its path.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, text string) (*Config, error) {
	t.Helper()
	return Load(write(t, text), nil, nil)
}

func environ(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func valueOf(t *testing.T, c *Config, key string) Value {
	t.Helper()
	values := c.Values()
	i := slices.IndexFunc(values, func(v Value) bool { return v.Key == key })
	if i < 0 {
		t.Fatalf("no value %q", key)
	}
	return values[i]
}

// shows: GP-10 PL-57 PL-71 PL-74 DL-63 CF-31
func TestDefaults(t *testing.T) {
	_, fields := defaults()
	for _, f := range fields {
		if f.initial == "" {
			continue
		}
		if err := f.set(f.initial); err != nil {
			t.Errorf("default %q of %s: %v", f.initial, f.key, err)
		}
	}
	c, err := Load(filepath.Join(t.TempDir(), FileName), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"store":                               ".lockkeeper/state.db",
		"deployment":                          "",
		"layout":                              "plain",
		"space":                               "",
		"max_claude_concurrency":              "12",
		"max_api_concurrency":                 "20",
		"max_test_concurrency":                "1",
		"max_lock_retries":                    "11",
		"escalate_after":                      "10m",
		"max_attempts":                        "3",
		"max_cpu_jobs":                        "4",
		"roots":                               "",
		"labels":                              "",
		"locks_file":                          "",
		"max_fix_attempts":                    "2",
		"max_ci_fix_attempts":                 "2",
		"lock_timeout":                        "5m",
		"reaper_interval":                     "30s",
		"max_global_jobs":                     "16",
		"max_jobs_per_project":                "8",
		"max_concurrent_map_jobs_per_project": "2",
		"events.retention":                    "30d",
		"events.max_rows":                     "1000000",
		"gate.allowed_write_paths":            ".",
		"gate.grant":                          "required",
		"gate.keep":                           "14d",
		"gate.keep_file_mb":                   "1024", "gate.keep_total_mb": "8192",
		"agent.name":                 "claude",
		"agent.command":              "",
		"agent.args":                 "",
		"agent.model":                "",
		"agent.timeout":              "1h",
		"agent.stall_after":          "10m",
		"agent.attempts":             "4",
		"agent.sandbox":              "prefer",
		"agent.caches":               "",
		"agent.read":                 "",
		"agent.env":                  "",
		"run.check_env":              "",
		"agent.linked":               "",
		"run.locking":                "on",
		"run.sidecar_dir":            ".pipeline",
		"run.analysis_dir":           ".analysis",
		"run.discovery_glob":         "",
		"run.discovery_excludes":     "",
		"run.screens":                "screens.json",
		"run.screens_gate":           "off",
		"run.lock_reads":             "auto",
		"run.test_path_resolver":     "",
		"run.suite_command":          "",
		"run.test_command":           "",
		"run.ci":                     "",
		"run.check_timeout":          "30m",
		"run.baseline":               "ask",
		"run.land":                   "after_verify",
		"run.verify":                 "on",
		"run.review":                 "off",
		"run.commit":                 "off",
		"run.branch":                 "",
		"run.workspaces":             "",
		"run.push":                   "off",
		"run.remote":                 "",
		"run.needs":                  "",
		"run.budget_usd":             "0",
		"run.budget_tokens":          "0",
		"research.method":            "ask",
		"research.model":             "claude-sonnet-4-6",
		"links.documents":            "README.md, docs/INDEX.md",
		"links.documents_if_present": "docs/BUILD_HISTORY.md",
		"links.exclude":              "node_modules, vendor",
		"links.ignore":               "http://localhost*, http://127.0.0.1*",
		"links.informational":        "archive, archived",
		"links.sites":                "",
		"links.url_timeout":          "10s",
		"links.urls_at_once":         "16",
		"links.urls_per_host":        "2",
		"serve.listen":               "127.0.0.1:0",
		"serve.allow_hosts":          "",
		"serve.local_clients":        "outside",
		"serve.session":              "7d",
		"serve.webhook":              "",
		"sessions.uncovered":         "keep",
		"sessions.read_only":         "off",
		"job_policy":                 "agent",
		"policies.agent.ttl":         "30m",
		"policies.agent.grace":       "0s",
		"policies.agent.heartbeat":   "1m",
		"policies.session.ttl":       "15m",
		"policies.session.grace":     "0s",
		"policies.session.heartbeat": "1m",
		"policies.dal.ttl":           "45s",
		"policies.dal.grace":         "30s",
		"policies.dal.heartbeat":     "10s",
		"policies.tidy.ttl":          "30m",
		"policies.tidy.grace":        "2m",
		"policies.tidy.heartbeat":    "5m",
		"policies.author.ttl":        "15m",
		"policies.author.grace":      "0s",
		"policies.author.heartbeat":  "1m",
	}
	rails := map[string]string{
		"layout":                   "rails",
		"gate.allowed_write_paths": "app/controllers, app/views, app/models, app/services, test/",
		"run.discovery_glob":       "app/controllers/**/*_controller.rb",
		"run.discovery_excludes":   "application_controller",
		"run.test_path_resolver":   "test/controllers/{controller}_controller_test.rb",
	}
	app := t.TempDir()
	if err := os.MkdirAll(filepath.Join(app, "app", "controllers"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The second is a file of an earlier version, which has no layout.
	for _, path := range []string{filepath.Join(app, FileName), write(t, "# of an earlier version\n"), write(t, "layout: rails\n")} {
		old, err := Load(path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range rails {
			if v := valueOf(t, old, key); v.Value != value || key != "layout" && v.Source != FromDefault {
				t.Errorf("%s: %+v, want %s", path, v, value)
			}
		}
	}
	values := c.Values()
	if len(values) != len(want) {
		t.Errorf("%d values, want %d", len(values), len(want))
	}
	if !slices.IsSortedFunc(values, func(a, b Value) int { return strings.Compare(a.Key, b.Key) }) {
		t.Error("values are not sorted")
	}
	for _, v := range values {
		if w, ok := want[v.Key]; !ok || w != v.Value || v.Source != "default" {
			t.Errorf("%+v, want value %q from default", v, w)
		}
	}
	for name, p := range lockkeeper.Policies() {
		if c.Policies()[name] != p {
			t.Errorf("policy %s: %+v, want %+v", name, c.Policies()[name], p)
		}
	}
}

// Each source overrides the previous one, and each value records its source.
//
// shows: GP-10 PL-43 PL-71
func TestPrecedence(t *testing.T) {
	path := write(t, "# heading\nmax_api_concurrency: 3\nmax_lock_retries: 4\nlock_timeout: 90\n\nevents:\n  retention: 1d\n")
	env := environ(map[string]string{"MAX_LOCK_RETRIES": "5", "LOCK_TIMEOUT": "120", "MAX_CLAUDE_CONCURRENCY": ""})
	c, err := Load(path, env, map[string]string{"lock-timeout": "2h", "store": "other.db"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Value{
		{"max_claude_concurrency", "12", "default", "1 to 1000"},
		{"max_api_concurrency", "3", "lockkeeper.yaml:2", "1 to 1000"},
		{"events.retention", "1d", "lockkeeper.yaml:7", "1h to 3650d"},
		{"max_lock_retries", "5", "env MAX_LOCK_RETRIES", "0 to 10000"},
		{"lock_timeout", "2h", "flag --lock-timeout", "1s to 7d"},
		{"store", "other.db", "flag --store", ""},
	} {
		if got := valueOf(t, c, want.Key); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if c.LockTimeout != 2*time.Hour || c.MaxLockRetries != 5 {
		t.Errorf("the struct disagrees with its listing: %+v", c)
	}
}

// Every field with an environment variable is read from it.
func TestEnvironmentReachesEveryNamedField(t *testing.T) {
	for _, f := range fieldsOf(Default()) {
		if f.env == "" {
			continue
		}
		text := cmp.Or(f.shown(), f.example)
		c, err := Load("", environ(map[string]string{f.env: text}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := valueOf(t, c, f.key).Source; got != "env "+f.env {
			t.Errorf("%s came from %q", f.key, got)
		}
	}
}

// A list is a sequence in the file, and comma-separated in variables and flags.
//
// shows: PL-57 CF-29
func TestGate(t *testing.T) {
	const file = "gate:\n  grant: optional\n  keep: 2d\n  allowed_write_paths:\n    - lib\n    - \"a, b\"\n"
	c, err := load(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if c.Gate.Grant != GrantOptional || c.Gate.Keep != 48*time.Hour || !slices.Equal(c.Gate.AllowedWritePaths, []string{"lib", "a, b"}) {
		t.Errorf("%+v", c.Gate)
	}
	if got := c.Source("gate.allowed_write_paths"); got != "lockkeeper.yaml:5" {
		t.Errorf("came from %s", got)
	}
	c, err = Load(write(t, file), environ(map[string]string{"ALLOWED_WRITE_PATHS": "app, test/ ,."}), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Value{"gate.allowed_write_paths", "app, test/, .", "env ALLOWED_WRITE_PATHS", ""}
	if got := valueOf(t, c, want.Key); got != want || !slices.Equal(c.Gate.AllowedWritePaths, []string{"app", "test/", "."}) {
		t.Errorf("%+v, %q", got, c.Gate.AllowedWritePaths)
	}
	for text, want := range map[string]string{
		"app,,test": `env ALLOWED_WRITE_PATHS "app,,test": entry 2 is empty`,
		"app,../x":  `entry 2 is a path with ..`,
		"/etc":      `entry 1 is not relative to the root`,
	} {
		if _, err := Load("", environ(map[string]string{"ALLOWED_WRITE_PATHS": text}), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if !slices.Equal(Default().Gate.AllowedWritePaths, []string{"."}) {
		t.Error("loading changed the default")
	}
}

// shows: DL-89
func TestLeasesOverrideTimesAlone(t *testing.T) {
	c, err := load(t, "policies:\n  dal:\n    ttl: 90s\n    heartbeat: 1500ms\n")
	if err != nil {
		t.Fatal(err)
	}
	want := lockkeeper.Policies()["dal"]
	want.TTL, want.Heartbeat = 90*time.Second, 1500*time.Millisecond
	if got := c.Policies()["dal"]; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := c.Policies()["person"]; got != lockkeeper.Policies()["person"] {
		t.Errorf("person changed: %+v", got)
	}
}

// The names in the specification of the job system set the same values.
//
// shows: DL-63
func TestSecondNames(t *testing.T) {
	c, err := load(t, "maxGlobalJobs: 3\nmaxJobsPerProject: 2\nmaxConcurrentMapJobsPerProject: 1\n")
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxGlobalJobs != 3 || c.MaxJobsPerProject != 2 || c.MaxConcurrentMapJobsPerProject != 1 {
		t.Errorf("%d, %d, %d; want 3, 2, 1", c.MaxGlobalJobs, c.MaxJobsPerProject, c.MaxConcurrentMapJobsPerProject)
	}
	if from := c.Source("max_global_jobs"); from != "lockkeeper.yaml:1" {
		t.Errorf("it came from %s", from)
	}
}

// Each of these is refused in one line, with the position, the reason and the next step, if
// there is one.
//
// shows: DL-89 CF-6
func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ name, file, want string }{
		{"typo", "max_lock_retires: 3", `lockkeeper.yaml:1:1: key "max_lock_retires": unknown key; next: did you mean max_lock_retries?`},
		{"both names", "max_global_jobs: 2\nmaxGlobalJobs: 3", `lockkeeper.yaml:2:1: key "maxGlobalJobs": another name of the key at lockkeeper.yaml:1; next: keep one of the two`},
		{"out of range by its second name", "maxGlobalJobs: 0", `lockkeeper.yaml:1:16: max_global_jobs "0": out of range, must be 1 to 10000`},
		{"nested typo", "events:\n  retension: 3d", `lockkeeper.yaml:2:3: key "events.retension": unknown key; next: did you mean retention?`},
		{"stranger", "events:\n  colour: red", `lockkeeper.yaml:2:3: key "events.colour": unknown key; next: use one of max_rows, retention`},
		{"policy without a lease", "policies:\n  person: {ttl: 1h}", `lockkeeper.yaml:2:3: key "policies.person": unknown key; next: use one of agent, author, dal, session, tidy`},
		{"permission of a policy", "policies:\n  dal: {upgrade: false}", `lockkeeper.yaml:2:9: key "policies.dal.upgrade": unknown key; next: use one of grace, heartbeat, ttl`},
		{"text for number", "max_fix_attempts: \"2\"", `lockkeeper.yaml:1:19: max_fix_attempts "2": must be a whole number, not text`},
		{"bool for number", "max_fix_attempts: yes\nmax_api_concurrency: true", `lockkeeper.yaml:2:22: max_api_concurrency "true": must be a whole number, not true or false`},
		{"fraction", "max_fix_attempts: 1.5", `lockkeeper.yaml:1:19: max_fix_attempts "1.5": must be a whole number, not a fraction`},
		{"list", "store: [a, b]", `lockkeeper.yaml:1:8: store "[…]": must be text, not a list`},
		{"number for text", "store: 12", `lockkeeper.yaml:1:8: store "12": must be text, not a number; next: put it in quotes`},
		{"nothing", "store:", `must be text, not nothing`},
		{"text for list", "gate: {allowed_write_paths: app}", `lockkeeper.yaml:1:29: gate.allowed_write_paths "…": must be a list of texts, not a single value`},
		{"empty list", "gate: {allowed_write_paths: []}", `gate.allowed_write_paths "[…]": must be a list of texts, not an empty one`},
		{"no list", "gate:\n  allowed_write_paths:", `must be a list of texts, not nothing`},
		{"number in list", "gate:\n  allowed_write_paths:\n    - app\n    - 12", `lockkeeper.yaml:4:7: gate.allowed_write_paths "12": must hold text, not a number; next: put it in quotes`},
		{"absolute", "gate: {allowed_write_paths: [app, /etc]}", `lockkeeper.yaml:1:35: gate.allowed_write_paths "/etc": not relative to the root`},
		{"way out", "gate: {allowed_write_paths: [app/../..]}", `"app/../..": a path with .., which may lead out of the root`},
		{"empty path", "gate: {allowed_write_paths: [\"\"]}", `gate.allowed_write_paths "": empty`},
		{"unprintable path", "gate: {allowed_write_paths: [\"a\\0b\"]}", `a path with a control character`},
		{"locks over a document", "locks_file: README.md", `lockkeeper.yaml:1:13: locks_file "README.md": does not end in .json`},
		{"locks over git's settings", "locks_file: .git/config", `locks_file ".git/config": the locks file cannot be .git or below it`},
		{"locks in git", "locks_file: ./sub//.GIT/locks.json", `the locks file cannot be .GIT or below it`},
		{"locks over our own", "locks_file: .lockkeeper/space.json", `the locks file cannot be .lockkeeper or below it`},
		{"locks over this file", "locks_file: lockkeeper.yaml", `does not end in .json`},
		{"grant neither way", "gate: {grant: never}", `gate.grant "never": must be required or optional`},
		{"kept too shortly", "gate: {keep: 1m}", `gate.keep "1m": out of range, must be 1h to 365d`},
		{"scalar for group", "events: 3", `lockkeeper.yaml:1:9: events "3": must hold keys and values, not a number`},
		{"list at the top", "- a\n- b", `the file "[…]": must hold keys and values, not a list`},
		{"too low", "max_claude_concurrency: 0", `lockkeeper.yaml:1:25: max_claude_concurrency "0": out of range, must be 1 to 1000`},
		{"negative", "max_claude_concurrency: -1", `out of range, must be 1 to 1000`},
		{"too high", "max_claude_concurrency: 99999999999999999999", `max_claude_concurrency`},
		{"not a duration", "lock_timeout: soon", `lockkeeper.yaml:1:15: lock_timeout "soon": not a duration, write it like 30m`},
		{"no time at all", "lock_timeout: 0", `out of range, must be 1s to 7d`},
		{"lease switched off", "policies: {agent: {ttl: 0}}", `policies.agent.ttl "0": out of range, must be 1s to 1d`},
		{"lease without end", "policies: {agent: {ttl: 400d}}", `policies.agent.ttl "400d": out of range, must be 1s to 1d`},
		{"heartbeat after the lease", "policies: {agent: {ttl: 30s}}", `policies.agent.heartbeat "1m": comes from default and is not shorter than ttl 30s from lockkeeper.yaml:1, so the lease would end between two heartbeats; next: set policies.agent.heartbeat`},
		{"unknown deployment", "deployment: cloud", `lockkeeper.yaml:1:13: deployment "cloud": must be single-node or multi-node`},
		{"several machines on a file", "deployment: multi-node", `store ".lockkeeper/state.db": comes from default and is a file of one machine, while deployment multi-node comes from lockkeeper.yaml:1`},
		{"twice", "max_fix_attempts: 1\nmax_fix_attempts: 2", `lockkeeper.yaml:2:1": mapping key "max_fix_attempts" already defined`},
		{"anchor", "lock_timeout: &x 3", `an anchor or alias`},
		{"merge", "a: &x {ttl: 3}\n<<: *x", `lockkeeper.yaml:2:1: key "<<": not a plain word`},
		{"tag", "store: !!str a", `a tagged value`},
		{"two documents", "store: a\n---\nstore: b", `a second document in one file`},
		{"broken", "store: \"a", `configuration file "`},
		{"not text", "store: \xff", `not UTF-8`},
		{"unknown store", "store: mysql://u:secret@h/db", `store "mysql://u:***@h/db": unknown kind of store`},
		{"keywords", "store: host=h password=secret", `store "***": looks like connection keywords`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, tc.file)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %s\nwant %s", err, tc.want)
			}
			var input *lockkeeper.InputError
			if !errors.As(err, &input) || lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
				t.Errorf("not an input error: %T", err)
			} else if strings.Contains(input.Error(), "\n") {
				t.Errorf("more than one line: %q", input.Error())
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("shows the password: %s", err)
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	path := write(t, "max_fix_attempts: x\nstoer: y\n")
	_, err := Load(path, environ(map[string]string{"LOCK_TIMEOUT": "never"}), map[string]string{"colour": "red"})
	if err == nil {
		t.Fatal("accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{path + ":1:19: max_fix_attempts", path + `:2:1: key "stoer"`, `env LOCK_TIMEOUT "never"`, `flag "--colour"`} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d of\n%s\nwant %s…", i+1, err, want)
		}
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir, nil, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory: %v", err)
	}
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, []byte(strings.Repeat("#\n", maxFileSize)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big, nil, nil); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("big file: %v", err)
	}
	below := filepath.Join(big, FileName)
	if _, err := Load(below, nil, nil); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("file below a file: %v", err)
	}
}

// A file that is made to exhaust the parser is refused quickly.
func TestHostileNesting(t *testing.T) {
	for _, sign := range []string{"[", "{a: ", "- ", "? ", "&a ", "!a ", "a:\n ", "a: ", "'", "| \n", "*a ", "x: [\n", "[a, ", "\"", "%a\n", "--- \n", "\t", ": ", ",", "<<: "} {
		text := strings.Repeat(sign, maxFileSize/len(sign))
		begin := time.Now()
		if c, err := load(t, text); err == nil && valueOf(t, c, "store").Source != "default" {
			t.Errorf("%q repeated sets something", sign)
		}
		if took := time.Since(begin); took > 2*time.Minute { // an exhausted parser takes hours
			t.Errorf("%q repeated took %v", sign, took)
		}
	}
}

func TestPasswordsAreHidden(t *testing.T) {
	for store, want := range map[string]string{
		"postgres://user:secret@host/db":                  "postgres://user:***@host/db",
		"postgres://user:secret@host:5433/db?sslmode=off": "postgres://user:***@host:5433/db?sslmode=off",
		"postgresql://host/db?user=u&password=secret":     "postgresql://host/db?password=***&user=u",
		"postgres://host/db?sslpassword=secret":           "postgres://host/db?sslpassword=***",
		"postgres://user@host/db":                         "postgres://user@host/db",
		"postgres://user:sec/ret@host/db":                 "postgres://***",
		"postgres://user:x@secret/ret@host/db":            "postgres://***",
		"postgres://user:1/secret@host/db":                "postgres://***",
		"postgres://user:%zzsecret@host/db":               "postgres://***",
		"host=h user=u password=secret":                   "***",
		"dir with password/state.db":                      "dir with password/state.db",
		".lockkeeper/state.db":                            ".lockkeeper/state.db",
	} {
		if got := Redact(store); got != want {
			t.Errorf("Redact(%q) = %q, want %q", store, got, want)
		}
	}
	c, err := load(t, "store: postgres://user:secret@host/db\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := valueOf(t, c, "store"); got.Value != "postgres://user:***@host/db" {
		t.Errorf("%+v", got)
	}
	if c.Store != "postgres://user:secret@host/db" {
		t.Errorf("the store itself lost its password: %q", c.Store)
	}
	for _, broken := range []string{"store: \"postgres://user:secret@host/db\n", "store: postgres://user:sec[ret@ho st/db\n  x: 1\n", "store:\n  - postgres://user:secret@host/db\n", "store=postgres://user:secret@host/db: 1\n"} {
		if _, err := load(t, broken); err == nil || strings.Contains(err.Error(), "sec") {
			t.Errorf("%q: %v", broken, err)
		}
	}
}

func TestHasPassword(t *testing.T) {
	for store, want := range map[string]bool{
		".lockkeeper/state.db": false, "locks***.db": false, "postgres://u@h/db?sslmode=require&application_name=x": false,
		"postgres://u:p@h/db": true, "postgres://u@h/db?password=p": true, "postgres://u:p@ss@h/db": true, "host=h password=p": true,
	} {
		if HasPassword(store) != want {
			t.Errorf("%s: %v", store, !want)
		}
	}
}

// shows: CF-6 DL-81
func TestSharedStoreNeedsADeployment(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"store: postgres://u:secret@h/db": `store postgres://u:***@h/db from lockkeeper.yaml:1`,
		"store: postgres://u:secret@h/db\ndeployment: single-node\n": "",
		"store: postgres://u:secret@h/db\ndeployment: multi-node\n":  "",
	} {
		c, err := load(t, text)
		if err != nil {
			t.Fatal(err)
		}
		err = c.CheckDeployment()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "300": 300 * time.Second, "45s": 45 * time.Second, "30m": 30 * time.Minute,
		"1h30m": 90 * time.Minute, "30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "250ms": 250 * time.Millisecond,
	} {
		got, err := ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if again, err := ParseDuration(formatDuration(got)); err != nil || again != got {
			t.Errorf("%v written as %q is read as %v, %v", got, formatDuration(got), again, err)
		}
	}
	for _, text := range []string{"", "s", "-1", "-5s", "+5s", "1.5h", "5 s", "5S", "5w", "5s5", "9999999999d", "4000000000d", "4000000000h4000000000h"} {
		if d, err := ParseDuration(text); err == nil {
			t.Errorf("%q accepted as %v", text, d)
		}
	}
}

// The sample sets nothing, and uncommenting all of it changes nothing either.
//
// shows: GP-10
func TestSample(t *testing.T) {
	c, err := load(t, Sample())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Values() {
		if v.Source != "default" {
			t.Errorf("the sample sets %+v", v)
		}
	}
	c, err = load(t, uncomment(Sample()))
	if err != nil {
		t.Fatal(err)
	}
	defaults := Default().Values()
	for i, v := range c.Values() {
		if v.Key == "space" { // only init writes it
			continue
		}
		if defaults[i].Value == "" { // it has no default
			defaults[i].Value = v.Value
		}
		if v.Value != defaults[i].Value || v.Source == "default" {
			t.Errorf("uncommented: %+v, want %s", v, defaults[i].Value)
		}
	}
}

func uncomment(text string) string {
	return regexp.MustCompile(`(?m)^( *)#(\S)`).ReplaceAllString(text, "$1$2")
}

// Load returns for any file, and every Config that it returns is valid.
func FuzzLoad(f *testing.F) {
	f.Add(Sample())
	f.Add(uncomment(Sample()))
	f.Add("policies: {agent: {ttl: 30s}}")
	f.Add("resources: {A: {files: [a]}}\noperations: {op: {write: [A], max_objects: 3}}")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := load(t, text)
		if err != nil {
			return
		}
		for name, p := range c.Policies() {
			if name != "person" && (p.TTL < time.Second || p.TTL > 24*time.Hour || p.Heartbeat >= p.TTL) {
				t.Errorf("%s: %+v", name, p)
			}
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for name, text := range map[string]string{
		"small":  "store: .lockkeeper/state.db\nmax_claude_concurrency: 4\npolicies:\n  agent:\n    ttl: 10m\n",
		"sample": Sample(),
		"full":   uncomment(Sample()),
	} {
		b.Run(name, func(b *testing.B) {
			path := write(b, text)
			for b.Loop() {
				if _, err := Load(path, os.LookupEnv, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
