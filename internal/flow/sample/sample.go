package sample

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockkeeper"
)

//go:embed all:app script research.md
var embedded embed.FS

// These are the commands of the application, run in its root.
const (
	Test = "sh bin/check" // followed by test files
	CI   = "sh bin/ci"
)

// These files of the application are the inputs of the flows "screens" and "tasks".
const (
	Manifest = "screens.json"
	Tasks    = "tasks.yaml"
)

// Write creates the application in a directory.
func Write(dir string) error {
	files, err := application()
	if err != nil {
		return err
	}
	return write(dir, files)
}

// Contended is the file that three batches of the flow "controllers" write.
const Contended = "app/controllers/concerns/authentication.rb"

// stuck is the beginning of the script of Stuck: the agents of the batches that write Contended hang.
const stuck = `- match: '^# apply (blog/comments|accounts/(sessions|registrations))/b1\s'
  steps: [{hang: true}]
`

// Script returns the script that agents follow in the application, in any flow. It
// multiplies their pauses by pace: 1 is made for watching, and 0 removes the pauses.
func Script(pace float64) ([]byte, error) { return script(pace, "") }

// Stuck returns Script, except that an agent that should change Contended hangs. A run of the
// flow "controllers" then always reaches the same state and stays in it: one agent holds that
// file, others wait for it, and at least three batches have landed.
func Stuck(pace float64) ([]byte, error) { return script(pace, stuck) }

func script(pace float64, first string) ([]byte, error) {
	script := []byte("calls:\n" + first)
	// The first file defines the edits that the others refer to.
	for _, part := range []string{"controllers", "screens", "tasks", "rest"} {
		text, err := embedded.ReadFile("script/" + part + ".yaml")
		if err != nil {
			return nil, err
		}
		script = append(script, text...)
	}
	var wrong error
	script = regexp.MustCompile(`sleep: \w+`).ReplaceAllFunc(script, func(step []byte) []byte {
		d, err := time.ParseDuration(strings.TrimPrefix(string(step), "sleep: "))
		if err != nil {
			wrong = err
		}
		return []byte("sleep: " + time.Duration(float64(d)*pace).String())
	})
	return script, wrong
}

// Research returns an answer to the only research topic of the analyses.
func Research() (string, error) {
	text, err := embedded.ReadFile("research.md")
	return string(text), err
}

func application() (map[string]string, error) {
	root, err := fs.Sub(embedded, "app")
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, path)
		files[path] = string(text)
		return err
	})
	return files, err
}

func write(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if there, err := os.ReadDir(dir); err != nil {
		return err
	} else if len(there) > 0 {
		return lockkeeper.WithNext(fmt.Errorf("%s is not empty (it has %s)", dir, there[0].Name()), "name a new directory")
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		name := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(path, "bin/") && filepath.Ext(path) == "" {
			mode = 0o755 // an embedded file has lost this mode
		}
		if err := os.WriteFile(name, []byte(files[path]), mode); err != nil {
			return err
		}
	}
	return nil
}
