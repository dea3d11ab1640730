package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/view"
)

const holder = "doctor"

// try attempts a forbidden write through each way to write that is reported as enforced.
func (x *examination) try(ctx context.Context) {
	name := "lockkeeper-doctor-" + strings.ToLower(rand.Text()[:10])
	for i := range x.report.Protections {
		w := &x.report.Protections[i]
		if w.Level != view.Enforced || w.Broken {
			continue
		}
		var wrong, next string
		var err error
		switch w.Writer {
		case "everybody":
			wrong, err = x.tryGate(ctx, name)
		case "runs":
			wrong, err = x.trySandbox(ctx, name)
		default:
			wrong, err = x.tryHook(ctx, w.Writer, name, w.Below)
			next = "reinstall lockkeeper and lockkeeper-hook, then lockkeeper init " + w.Writer
		}
		if err = errors.Join(err, x.gone(name)); err != nil {
			wrong = "the trial failed: " + err.Error()
		}
		if wrong == "" {
			w.Fact += tried(w.Writer)
			continue
		}
		w.Level, w.Broken, w.Fact, w.Next = view.Advisory, true, wrong, cmp.Or(next, w.Next)
	}
}

// tried returns the sentence about a successful trial.
func tried(writer string) string {
	if writer == "runs" {
		return "; a forbidden write and a forbidden read were tried and refused"
	}
	return "; a forbidden write was tried and refused"
}

// gone removes the file of a trial. It returns an error if the file existed.
func (x *examination) gone(name string) error {
	err := os.Remove(filepath.Join(x.site.Root, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.New("the forbidden write went through")
}

// tryGate writes through the gate without a grant, and drops the refused content.
func (x *examination) tryGate(ctx context.Context, name string) (wrong string, err error) {
	g, err := x.app.Gate()
	if err != nil {
		return "", err
	}
	_, err = g.Write(ctx, nil, name, []byte("tried by lockkeeper doctor\n"))
	switch code := lockkeeper.CodeOf(err); {
	case err == nil:
		wrong = "a write without a grant landed"
	case code != lockkeeper.CodeViolation && code != lockkeeper.CodeNotHeld:
		return "", err
	}
	kept, err := session.Rescued(ctx, x.app)
	for _, e := range kept {
		if e.Path == name {
			err = errors.Join(err, x.app.Shelf().Drop(e.ID))
		}
	}
	return wrong, err
}

// trySandbox runs a confined command that writes into the codebase and reads a file that
// is not listed for it.
func (x *examination) trySandbox(ctx context.Context, name string) (wrong string, err error) {
	_, level, err := conduct.SandboxLevel(ctx, x.app)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "lockkeeper-doctor-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	work, secret := filepath.Join(real, "work"), filepath.Join(real, "secret")
	if err := errors.Join(os.Mkdir(work, 0o700), os.WriteFile(secret, []byte("a secret of the doctor"), 0o600)); err != nil {
		return "", err
	}
	script := `echo inside >inside; echo tried >"$1"; cat "$2"`
	argv, err := sandbox.Wrap(level, sandbox.Confinement{Write: []string{work}}, []string{"/bin/sh", "-c", script, "sh", filepath.Join(x.site.Root, name), secret})
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.WaitDelay = work, time.Second
	said, err := cmd.CombinedOutput()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(work, "inside")); err != nil {
		return "a confined command could not write to its own directory: " + strings.TrimSpace(string(said)), nil
	}
	if _, err := os.Lstat(filepath.Join(x.site.Root, name)); err == nil {
		return "a confined command wrote into the codebase", nil
	}
	if strings.Contains(string(said), "a secret of the doctor") {
		return "a confined command read a file that was not listed for it", nil
	}
	return "", nil
}

// tryHook locks a file and asks the host's hook whether another session may write it. If below is
// set, the session works in a subdirectory, and the hook is the one that such a session finds.
func (x *examination) tryHook(ctx context.Context, host, name string, below bool) (wrong string, err error) {
	st, from := x.status(host), x.site
	hook := st.Before()
	if below {
		hook, from.Root = st.Anywhere(), filepath.Join(x.site.Root, project.DirName)
	}
	if hook == nil {
		return "its hook is missing", nil
	}
	lock := lockkeeper.Lock{Target: lockkeeper.Target{Path: name, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
	grant, err := x.app.Acquire(ctx, lockkeeper.Request{Holder: holder, Locks: []lockkeeper.Lock{lock}, TTL: time.Minute, Metadata: map[string]string{"reason": "tries a forbidden write"}}, 0)
	if err != nil {
		return "", err
	}
	defer func() {
		_, ending := x.app.Release(context.WithoutCancel(ctx), grant.ID)
		err = errors.Join(err, ending)
	}()
	session := name
	call, err := callOf(st.Host, session, from.Root, filepath.Join(x.site.Root, name))
	if err != nil {
		return "", err
	}
	said, err := from.Run(ctx, *hook, call)
	if err != nil {
		return "", err
	}
	over, err := json.Marshal(map[string]string{"session_id": session, "hook_event_name": "SessionEnd", "cwd": from.Root, "reason": "other"})
	if err != nil {
		return "", err
	}
	if _, err := from.Run(ctx, *hook, over); err != nil {
		return "", err
	}
	if !said.Refuses() || !strings.Contains(said.Reason(), "held by "+holder) {
		return fmt.Sprintf("its hook allowed a write to a locked file: exit status %d: %s", said.Code, strings.TrimSpace(said.Out+said.Err)), nil
	}
	return "", nil
}

func (x *examination) status(host string) enrol.Status {
	for _, st := range x.hosts {
		if st.Host.Name == host {
			return st
		}
	}
	return enrol.Status{}
}

// callOf returns the hook call that a host makes before it writes a whole file.
func callOf(h enrol.Host, session, root, file string) ([]byte, error) {
	call := map[string]any{"session_id": session, "cwd": root, "hook_event_name": "PreToolUse", "tool_use_id": session, "tool_name": "Write",
		"tool_input": map[string]string{"file_path": file, "content": "tried\n"}}
	switch h.Hook {
	case "codex":
		call["tool_name"] = "apply_patch"
		call["tool_input"] = map[string]string{"command": "*** Begin Patch\n*** Add File: " + file + "\n+tried\n*** End Patch\n"}
	case "gemini":
		call["hook_event_name"], call["tool_name"] = "BeforeTool", "write_file"
	case "opencode":
		call["tool_name"], call["tool_input"] = "write", map[string]string{"filePath": file, "content": "tried\n"}
	}
	return json.Marshal(call)
}
