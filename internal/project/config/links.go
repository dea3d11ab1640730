package config

import "time"

// Links configures the link checker.
type Links struct {
	Documents   []string      `key:"documents" default:"README.md,docs/INDEX.md" doc:"Documents that are always checked, relative to the root. A missing one is reported."`
	Optional    []string      `key:"documents_if_present" default:"docs/BUILD_HISTORY.md" doc:"Documents that are checked if they exist."`
	Exclude     []string      `key:"exclude" default:"node_modules,vendor" doc:"Documents and directories that --deep skips. As in .gitignore: a name at any depth or a path from the root, with wildcards, covering everything below."`
	Ignore      []string      `key:"ignore" none:"ok" default:"http://localhost*,http://127.0.0.1*" doc:"Targets that are not checked: names, paths from the root or URLs, with the same patterns. An empty list checks everything."`
	URLTimeout  time.Duration `key:"url_timeout" min:"1s" max:"5m" default:"10s" doc:"Maximum time of one request of --check-urls."`
	URLsAtOnce  int           `key:"urls_at_once" min:"1" max:"256" default:"16" doc:"Maximum number of requests of --check-urls at once."`
	URLsPerHost int           `key:"urls_per_host" min:"1" max:"64" default:"2" doc:"Maximum number of requests of --check-urls at once to one host."`
}
