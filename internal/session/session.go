package session

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project"
)

// Policy is the lock policy of session grants.
const Policy = "session"

// Metadata keys of a session's grant. Any grant may have a reason.
const (
	keySession = "session"
	keyAgent   = "agent"
	keyTTY     = "tty"
	keyReason  = "reason"
	keyRoot    = "root" // root of the copy of the codebase in which the session works
)

// Info describes one session.
type Info struct {
	ID       string              `json:"id"`    // given by the host
	Agent    string              `json:"agent"` // claude-code, codex, gemini, opencode, or the name that an MCP client gives
	Callsign string              `json:"callsign"`
	TTY      string              `json:"tty,omitempty"`
	About    string              `json:"about,omitempty"` // the first words of the prompt
	Process  *lockkeeper.Process `json:"process,omitempty"`
	Began    time.Time           `json:"began"`
	Seen     time.Time           `json:"seen"`            // the time of the session's last call
	GrantID  string              `json:"grant,omitempty"` // empty: the session holds nothing
}

// A Caller is the identity that a host reports for a call.
type Caller struct {
	ID       string
	Agent    string
	About    string              // empty: unchanged
	Process  *lockkeeper.Process // the host's process; nil: unknown
	TTY      string
	Subagent Subagent // the calling agent of the session
}

// A Registry manages the sessions of one codebase.
type Registry struct {
	app *project.Project
	dir string
	now func() time.Time
}

func Open(a *project.Project) *Registry { return &Registry{app: a, dir: SessionsDir(a), now: time.Now} }

// Path returns the canonical path of a file from the root, for any spelling of its name.
func (b *Registry) Path(file string) (string, error) { return b.app.File(file) }

// at returns the location on disk of a path of the codebase.
func (b *Registry) at(path string) string {
	return filepath.Join(b.app.Root.Dir(), filepath.FromSlash(path))
}

// keyOf returns the file name of a session. It hashes the id, which may contain any characters.
func keyOf(agent, id string) string {
	sum := sha256.Sum256([]byte(agent + "\x00" + id))
	return hex.EncodeToString(sum[:12])
}

// firstWords returns the first meaningful line of a prompt, shortened, to show to others.
func firstWords(prompt string) string {
	const size = 120
	for line := range strings.Lines(prompt) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "<") {
			continue
		}
		text := strings.Join(words, " ")
		if runes := []rune(text); len(runes) > size {
			text = string(runes[:size])
		}
		return text
	}
	return ""
}

func write(path string) lockkeeper.Lock {
	return lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
}

func writes(paths []string) (locks []lockkeeper.Lock) {
	for _, p := range paths {
		locks = append(locks, write(p))
	}
	return locks
}
