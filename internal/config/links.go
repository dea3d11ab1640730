package config

import "time"

// Links says what the link checker looks at.
type Links struct {
	Documents   []string      `key:"documents" doc:"Documents that are always checked, from the root; one that is missing is a finding."`
	Optional    []string      `key:"documents_if_present" doc:"Documents that are checked where they are there."`
	Exclude     []string      `key:"exclude" doc:"Documents and directories that --deep passes over. As in .gitignore: a name at any depth, or a path from the root; both may have wild cards, and cover all below."`
	Ignore      []string      `key:"ignore" none:"ok" doc:"Targets that are not checked: names, paths from the root or URLs, written in the same way. An empty list checks all."`
	URLTimeout  time.Duration `key:"url_timeout" min:"1s" max:"5m" doc:"The longest that one request of --check-urls may take."`
	URLsAtOnce  int           `key:"urls_at_once" min:"1" max:"256" doc:"Requests of --check-urls at once."`
	URLsPerHost int           `key:"urls_per_host" min:"1" max:"64" doc:"Requests of --check-urls at once to one host."`
}

func defaultLinks() Links {
	return Links{
		Documents:  []string{"README.md", "docs/INDEX.md"},
		Optional:   []string{"docs/BUILD_HISTORY.md"},
		Exclude:    []string{"node_modules", "vendor"},
		Ignore:     []string{"http://localhost*", "http://127.0.0.1*"},
		URLTimeout: 10 * time.Second, URLsAtOnce: 16, URLsPerHost: 2,
	}
}
