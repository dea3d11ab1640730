package sandbox

import (
	"slices"
	"testing"
)

// A variable is dropped if its name or its value shows a credential, unless keep has its name.
func TestEnviron(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	stay := []string{"PATH=/bin", "HOME=/home/u", "RAILS_ENV=test", "LANG=C", "KEYBOARD=us", "TOKENIZERS_PARALLELISM=false", "PWD=/work", "COMPASS=north",
		"PGHOST=localhost", "GITHUB_ACTIONS=true", "https_proxy=http://u:p@proxy:3128", "LOCKKEEPER_GRANT=g", "XDG_CACHE_HOME=/home/u/cache",
		"DATABASE_URL=postgres://localhost/test", "PROMPT=a sk-etch"}
	keep := []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_OAUTH_TOKEN=k", "PGPASSFILE=kept"}
	gone := []string{"PGPASSWORD=x", "PGSERVICEFILE=x", "MYSQL_PWD=x", "LOCKKEEPER_TOKEN=x", "LOCKKEEPER_TOKEN_ADMIN=x", "LOCKKEEPER_STORE=x", "LOCKKEEPER_SOCKET_TOKEN=s",
		"AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_SESSION_TOKEN=x", "GITHUB_TOKEN=x", "GH_TOKEN=x", "NPM_TOKEN=x", "npm_config__auth=x", "OPENAI_API_KEY=x",
		"GOOGLE_APPLICATION_CREDENTIALS=/f", "SENTRY_DSN=x", "SSH_AUTH_SOCK=/s", "SSH_AGENT_PID=1", "GPG_AGENT_INFO=x", "DBUS_SESSION_BUS_ADDRESS=x", "DISPLAY=:0", "TMUX=/s",
		"VSCODE_GIT_IPC_HANDLE=/s", "DOCKER_HOST=x", "DATABASE_URL=postgres://u:secret@localhost/test", "DEPLOY=ghp_0123456789abcdefABCD", "PEM=-----BEGIN PRIVATE KEY-----",
		"XDG_CONFIG_HOME=/elsewhere", "TMPDIR=/tmp"}
	got := Environ(slices.Concat(stay, keep, gone), "/work/tmp", "PGPASSFILE", "ANTHROPIC_*", "CLAUDE_*")
	want := append(slices.Concat(stay, keep), "TMPDIR=/work/tmp", "TMP=/work/tmp", "TEMP=/work/tmp", "CLAUDE_CODE_TMPDIR=/work/tmp")
	for _, v := range got {
		if !slices.Contains(want, v) {
			t.Errorf("%s stayed", v)
		}
	}
	for _, v := range want {
		if !slices.Contains(got, v) {
			t.Errorf("%s is gone", v)
		}
	}
}
