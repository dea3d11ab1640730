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

// A Command is a program to run for one call.
type Command struct {
	Argv []string
	Dir  string
	Env  []string

	Stdin, Stdout, Stderr *os.File
}

// An Exit records how a process ended.
type Exit struct {
	Code    int            `json:"code"`    // exit code as a shell reports it
	Signal  syscall.Signal `json:"signal"`  // the signal that killed the process; 0: none
	Stopped bool           `json:"stopped"` // the caller stopped the process
}

// byItself reports whether the process ended without a signal.
func (e Exit) byItself() bool { return e.Signal == 0 && !e.Stopped }

func (e Exit) ok() bool { return e.Code == 0 && e.byItself() }

func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("killed by a signal (%s)", e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// A Runner runs a command and returns when its whole process tree has ended. When ctx ends,
// it ends the tree, and its error wraps context.Cause(ctx). No other error does. Any other
// error means that the command could not be started, or that a process did not end. Call sets
// Exit.Stopped.
type Runner func(ctx context.Context, c Command) (Exit, error)

// environment returns a base environment with some variables set and some removed.
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

// secretWords are the parts of a variable's name that mark its value as a secret.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"}

// shortSecret is the length below which a value is too common to be searched for.
const shortSecret = 8

// checkSecrets refuses a command whose arguments contain a secret of its environment.
func (c *Command) checkSecrets() error {
	for _, v := range c.Env {
		name, value, _ := strings.Cut(v, "=")
		secret := slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(strings.ToUpper(name), word) })
		if !secret || len(value) < shortSecret {
			continue
		}
		if slices.ContainsFunc(c.Argv, func(arg string) bool { return strings.Contains(arg, value) }) {
			return &lockkeeper.InputError{Field: "arguments", Value: name, Reason: "the arguments contain the value of this variable, and every user of the machine can read them",
				Next: "pass it in the environment only"}
		}
	}
	return nil
}
