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

// Policy is the policy of the grants of sessions.
const Policy = "session"

// Keys of what a session's grant says of it, beside the reason that any grant may have.
const (
	keySession = "session"
	keyAgent   = "agent"
	keyTTY     = "tty"
	keyReason  = "reason"
)

// Info describes one session.
type Info struct {
	ID       string              `json:"id"`    // as its host calls it
	Agent    string              `json:"agent"` // claude-code, codex, gemini, or how an MCP client calls itself
	Callsign string              `json:"callsign"`
	TTY      string              `json:"tty,omitempty"`
	About    string              `json:"about,omitempty"` // the first words of the prompt
	Process  *lockkeeper.Process `json:"process,omitempty"`
	Began    time.Time           `json:"began"`
	Seen     time.Time           `json:"seen"`            // the time of its last call
	GrantID  string              `json:"grant,omitempty"` // empty: it holds nothing
}

// Caller is what a host says of who calls.
type Caller struct {
	ID       string
	Agent    string
	About    string              // empty: as it was
	Process  *lockkeeper.Process // the host's; nil: unknown
	TTY      string
	Subagent Subagent // which agent of the session it is
}

// Registry is the sessions of one codebase.
type Registry struct {
	app *project.Project
	dir string
	now func() time.Time
}

// Open opens the registry of an open codebase.
func Open(a *project.Project) *Registry { return &Registry{app: a, dir: SessionsDir(a), now: time.Now} }

// Path is the one name, from the root, of a file however it is spelled.
func (b *Registry) Path(file string) (string, error) { return b.app.File(file) }

// at is where a path of the codebase is on disk.
func (b *Registry) at(path string) string {
	return filepath.Join(b.app.Root.Dir(), filepath.FromSlash(path))
}

// keyOf is the name of a session's file. Ids come from elsewhere and may hold anything.
func keyOf(agent, id string) string {
	sum := sha256.Sum256([]byte(agent + "\x00" + id))
	return hex.EncodeToString(sum[:12])
}

// firstWords is what a prompt is about, for others: its first line that says something.
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

// write is a lock to write one file.
func write(path string) lockkeeper.Lock {
	return lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
}

func writes(paths []string) (locks []lockkeeper.Lock) {
	for _, p := range paths {
		locks = append(locks, write(p))
	}
	return locks
}
