package sandbox

import (
	"slices"
	"strings"
)

// secrets are the variables by which stores and the supervisor's own interfaces
// are entered. What agents need themselves, such as the keys of their API, is
// not among them.
var secrets = []string{"LOCKKEEPER_STORE", "LOCKKEEPER_TOKEN", "PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"}

// claudeTemp is Claude Code's own word for where temporary files go. Where it cannot write
// there it waits for ever.
const claudeTemp = "CLAUDE_CODE_TMPDIR"

// Environ is what a confined command gets of an environment: without the
// passwords of stores, other than those named in keep, and with a directory of
// its own for temporary files, which the caller lets it write.
func Environ(env []string, temp string, keep ...string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(keep, name) {
			return false
		}
		return name == "TMPDIR" || name == "TMP" || name == "TEMP" || name == claudeTemp ||
			slices.ContainsFunc(secrets, func(s string) bool { return name == s || strings.HasPrefix(name, s+"_") })
	})
	return append(env, "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp, claudeTemp+"="+temp)
}
