package agent

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"lockkeeper"
)

// Command is a program to run for one call.
type Command struct {
	Argv []string
	Dir  string
	Env  []string

	Stdin, Stdout, Stderr *os.File
}

// Exit is how a process ended.
type Exit struct {
	Code    int            `json:"code"`    // as shells give it
	Signal  syscall.Signal `json:"signal"`  // that killed it; 0: none did
	Stopped bool           `json:"stopped"` // it was ended before it ended by itself
}

// byItself: it ended because it wanted to.
func (e Exit) byItself() bool { return e.Signal == 0 && !e.Stopped }

func (e Exit) ok() bool { return e.Code == 0 && e.byItself() }

func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("killed by a signal (%s)", e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Runner runs a command and returns when nothing of its process tree is left. When ctx
// ends it ends the tree, and its error wraps context.Cause(ctx); an error does that in no
// other case. Any other error says that the command could not be started, or that
// something of it would not go. Whether the process was stopped is for Call to say.
type Runner func(ctx context.Context, c Command) (Exit, error)

// environment is a base with some variables set and some removed.
func environment(base []string, set map[string]string, unset ...string) []string {
	if base == nil {
		base = os.Environ()
	}
	env := slices.DeleteFunc(slices.Clone(base), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, replaced := set[name]
		return replaced || slices.Contains(unset, name)
	})
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env[len(env)-len(set):])
	return env
}

// secretWords are the parts of a variable's name that say that its value is a secret.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"}

// shortSecret is the length below which a value is too common to be looked for.
const shortSecret = 8

// keepSecrets refuses a command whose arguments show a secret of its environment.
func (c *Command) keepSecrets() error {
	for _, v := range c.Env {
		name, value, _ := strings.Cut(v, "=")
		secret := slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(strings.ToUpper(name), word) })
		if !secret || len(value) < shortSecret {
			continue
		}
		if slices.ContainsFunc(c.Argv, func(arg string) bool { return strings.Contains(arg, value) }) {
			return &lockkeeper.InputError{Field: "arguments", Value: name, Reason: "the value of this variable stands in the argument list, where every user of the machine can read it",
				Next: "leave it in the environment alone"}
		}
	}
	return nil
}
