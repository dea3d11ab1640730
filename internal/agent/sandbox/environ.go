package sandbox

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// secretParts are parts of the names of variables that hold a credential.
var secretParts = []string{"PASSWORD", "PASSWD", "PASSPHRASE", "PASSFILE", "SECRET", "CREDENTIAL", "TOKEN", "APIKEY"}

// secretWords are words, between underscores, in the names of variables that hold
// a credential or the address of a program that has some.
var secretWords = []string{"KEY", "KEYS", "AUTH", "PASS", "PWD", "PAT", "DSN", "COOKIE", "SOCK", "SOCKET", "IPC"}

// secretNames are variables that hold a credential, or lead to a program or a file that has
// credentials: stores, key agents, desktops, daemons.
var secretNames = []string{
	"LOCKKEEPER_STORE*", "LOCKKEEPER_WEBHOOK*", "PGSERVICEFILE", "SSH_*", "GPG_*", "GNUPGHOME", "KRB5CCNAME", "NETRC",
	"KUBECONFIG", "DOCKER_HOST", "DOCKER_CONFIG", "CONTAINER_HOST", "DBUS_*", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY",
	"XAUTHORITY", "TMUX", "STY", "KITTY_LISTEN_ON", "VSCODE_*", "LISTEN_*",
}

// secretValues matches credentials in values: passwords in addresses, private keys,
// and tokens of services whose tokens have a known prefix.
var secretValues = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^/@\s]*:[^/@\s]+@|-----BEGIN |` +
	`\b(gh[oprsu]_|github_pat_|glpat-|xox[a-z]-|sk-|sk_live_|AKIA|AIza|npm_|pypi-|hf_|dop_v1_)[A-Za-z0-9_-]{16}`)

// claudeTemp is Claude Code's own variable for the directory of temporary files. If it
// cannot write there, it hangs.
const claudeTemp = "CLAUDE_CODE_TMPDIR"

// Environ returns the part of an environment that a confined command gets. It drops
// variables whose name or value shows a credential, except those in keep and the
// addresses of proxies. A name in keep may end in *. It sets the directory for
// temporary files to temp, which the command must be allowed to write.
func Environ(env []string, temp string, keep ...string) []string {
	var kept []string
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case isOneOf(name, []string{"TMPDIR", "TMP", "TEMP", claudeTemp}):
		case isOneOf(name, keep), !isSecret(name, value) && !leadsAway(name, value):
			kept = append(kept, v)
		}
	}
	return append(kept, "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp, claudeTemp+"="+temp)
}

// isSecret reports whether a variable shows a credential.
func isSecret(name, value string) bool {
	upper := strings.ToUpper(name)
	if strings.HasSuffix(upper, "_PROXY") {
		return false // a command may use the network, and may need the proxy for it
	}
	if isOneOf(upper, secretNames) || secretValues.MatchString(value) {
		return true
	}
	upper = strings.ReplaceAll(upper, "TOKENIZER", "")
	if slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(upper, part) }) {
		return true
	}
	words := strings.FieldsFunc(upper, func(r rune) bool { return r == '_' })
	return len(words) > 1 && slices.ContainsFunc(words, func(word string) bool { return slices.Contains(secretWords, word) })
}

// leadsAway reports whether a variable moves a user's directory out of the home directory, where
// the command would not find it.
func leadsAway(name, value string) bool {
	if !isOneOf(name, []string{"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"}) {
		return false
	}
	home := os.Getenv("HOME")
	return !filepath.IsAbs(home) || !within(filepath.Clean(value), filepath.Clean(home))
}

// isOneOf reports whether a list has a name, or a prefix of it followed by *.
func isOneOf(name string, list []string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		begin, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, begin)
	})
}
