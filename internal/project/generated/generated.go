package generated

import "strings"

// caches are directories of files that tools can make again.
var caches = map[string]bool{
	"node_modules": true, "__pycache__": true, ".pytest_cache": true, ".mypy_cache": true, ".ruff_cache": true, ".tox": true, ".gradle": true,
	"target": true, "dist": true,
}

// likely are directories that tools usually fill, and sometimes people.
var likely = map[string]bool{
	"vendor": true, "third_party": true, "bower_components": true, "build": true, "out": true, "coverage": true,
	"site-packages": true, "_site": true, ".venv": true, "venv": true, ".nox": true, ".eggs": true, ".next": true, ".nuxt": true,
	".output": true, ".terraform": true, ".bundle": true, "tmp": true, "log": true,
}

// IsCache reports whether a directory with a name has only files that tools can make again.
func IsCache(name string) bool { return caches[name] }

// Contains reports whether a path is, or is in, a directory that tools usually fill.
func Contains(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if caches[part] || likely[part] {
			return true
		}
	}
	return false
}
