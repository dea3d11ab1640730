package author_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/compat/bookfile"
	"lockkeeper/internal/machine/process"
	"lockkeeper/store"
)

// writerVariable makes the test binary a process that makes claims.
const writerVariable = "LOCKKEEPER_TEST_WRITER"

// A writer is the configuration of such a process.
type writer struct {
	Root, State, Marks string
	Number, Claims     int
	Seed               uint64
}

const (
	writers  = 16
	chapters = 40
)

// write claims and releases chapters until it has made enough claims.
func write(told string) int {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	var w writer
	if err := errors.Join(json.Unmarshal([]byte(told), &w), w.run(context.Background())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (w *writer) run(ctx context.Context) (err error) {
	s := &study{root: w.Root, env: []string{"XDG_STATE_HOME=" + w.State, "HOME=" + w.State, "PATH=" + os.Getenv("PATH")}}
	if s.app, err = openApp(ctx, s); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.app.Close()) }()
	au, err := author.Open(s.app, s.env)
	if err != nil {
		return err
	}
	self, err := process.Self()
	if err != nil {
		return err
	}
	by := author.Instance{ID: fmt.Sprintf("CLI-%d", w.Number), Agent: "claude", Process: &self}
	random := rand.New(rand.NewPCG(w.Seed, uint64(w.Number)))
	for done := 0; done < w.Claims; {
		names := []string{chapter(random.IntN(chapters))}
		if random.IntN(3) == 0 {
			names = append(names, chapter(random.IntN(chapters)))
		}
		a, err := au.Claim(ctx, author.Request{By: by, Names: names, Mode: lockkeeper.Write})
		if err != nil {
			return err
		}
		if len(a.Conflicts) > 0 {
			continue
		}
		if err := w.hold(a.Names); err != nil {
			return err
		}
		done++
		if _, err := au.Unclaim(ctx, by, nil); err != nil {
			return err
		}
	}
	return nil
}

func chapter(n int) string { return fmt.Sprintf("Chapter_%02d", n+1) }

// hold creates a marker file per chapter and fails if another process has one.
func (w *writer) hold(names []string) error {
	for _, name := range names {
		f, err := os.OpenFile(filepath.Join(w.Marks, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s has two holders", name)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(w.Marks, name)); err != nil {
			return err
		}
	}
	return nil
}

// torture returns how many times longer than usual random tests should run.
func torture() int {
	n, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE"))
	if err != nil {
		return 1
	}
	return max(1, n)
}

// Many processes make claims while a foreign tool writes the file. No chapter has two
// holders, the file is always valid JSON, and each foreign claim is imported or recorded
// as a collision.
//
// shows: LM-42 LM-51 LM-58 CF-39
func TestManyProcessesAndAForeignWriter(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	total := 160
	if torture() > 1 {
		total = 10_000
	}
	s := newStudy(t, "")
	marks, state := t.TempDir(), filepath.Join(filepath.Dir(s.root), "state")
	exe, err := os.Executable()
	must(t, err)
	var working, watching sync.WaitGroup
	for n := range writers {
		told, err := json.Marshal(writer{Root: s.root, State: state, Marks: marks, Number: n + 1, Claims: total / writers, Seed: seed})
		must(t, err)
		working.Go(func() {
			cmd := exec.Command(exe)
			alive, err := cmd.StdinPipe() // ends the process when the test binary ends, however it ends
			if err != nil {
				t.Error(err)
				return
			}
			defer alive.Close()
			cmd.Env = append(os.Environ(), writerVariable+"="+string(told), "GORACE=atexit_sleep_ms=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", n+1, err, out)
			}
		})
	}
	done := make(chan struct{})
	o := &outsider{s: s, random: rand.New(rand.NewPCG(seed, 0)), done: done}
	watching.Go(o.run)
	watching.Go(o.readAlong)
	working.Wait()
	close(done)
	watching.Wait()
	t.Logf("%d claims by %d processes; %d foreign claims: %d imported, %d collided, %d came back", total, writers, o.claimed, o.imported, o.collided, o.cameBack)
	if o.claimed == 0 || len(s.listed()) != 0 || len(s.file()) != 0 {
		t.Errorf("%d foreign claims; claims left: %v; the file has %v", o.claimed, s.listed(), s.file())
	}
}

// An outsider is a foreign tool that knows only the file.
type outsider struct {
	s      *study
	random *rand.Rand
	done   chan struct{}

	writing                     sync.Mutex // held while writing in place, when readers find an incomplete file
	claimed, imported, collided int
	cameBack                    int
	seen                        uint64 // the last event
}

func (o *outsider) isDone() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// run claims a random chapter, waits until the claim was noticed, and releases it.
func (o *outsider) run() {
	for n := 0; !o.isDone(); n++ {
		mine := bookfile.Entry{Resource: chapter(o.random.IntN(chapters)), Instance: fmt.Sprintf("Desktop-%d", n), Timestamp: time.Now().UTC().Format(time.RFC3339)}
		if !o.change(func(list []bookfile.Entry) []bookfile.Entry { return append(o.tidied(list), mine) }) {
			continue
		}
		o.claimed++
		switch kind := o.noticed(mine); kind {
		case lockkeeper.EventAcquired:
			o.imported++
		case lockkeeper.EventDenied:
			o.collided++
		default:
			o.s.t.Errorf("the claim of %s on %s was not noticed", mine.Instance, mine.Resource)
			return
		}
		if !o.change(func(list []bookfile.Entry) []bookfile.Entry { return slices.DeleteFunc(list, isOutsider) }) {
			return
		}
	}
	o.change(o.tidied)
}

func isOutsider(e bookfile.Entry) bool { return strings.HasPrefix(e.Instance, "Desktop-") }

// tidied removes entries that the outsider released and then wrote back by mistake: it had read the
// file before its release, which was overwritten, was restored.
func (o *outsider) tidied(list []bookfile.Entry) []bookfile.Entry {
	rest := slices.DeleteFunc(slices.Clone(list), isOutsider)
	o.cameBack += len(list) - len(rest)
	return rest
}

// change reads, changes and writes the file, as foreign tools do.
func (o *outsider) change(how func([]bookfile.Entry) []bookfile.Entry) bool {
	text, err := os.ReadFile(o.s.path())
	if err != nil {
		return false // not created yet
	}
	list, err := bookfile.Decode(text)
	if err != nil {
		o.s.t.Errorf("the file is malformed: %v", err)
		return false
	}
	text = bookfile.Encode(how(list))
	if o.random.IntN(2) == 0 {
		o.writing.Lock()
		defer o.writing.Unlock()
		err = os.WriteFile(o.s.path(), text, 0o644)
	} else {
		temp := o.s.path() + ".foreign"
		err = errors.Join(os.WriteFile(temp, text, 0o644), os.Rename(temp, o.s.path()))
	}
	if err != nil {
		o.s.t.Error(err)
	}
	return err == nil
}

// noticed returns the event about a foreign claim. When all other processes have ended, it
// synchronizes the file itself.
func (o *outsider) noticed(mine bookfile.Entry) lockkeeper.EventKind {
	for limit := time.Now().Add(5 * time.Minute); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if o.isDone() {
			if _, _, err := o.s.Claims(context.Background()); err != nil {
				o.s.t.Error(err)
			}
		}
		events, err := o.s.app.Locks.Events(context.Background(), store.EventQuery{After: o.seen, Limit: 1000})
		if err != nil {
			o.s.t.Error(err)
			return ""
		}
		for _, ev := range events {
			o.seen = ev.Seq
			if ev.Actor.Name == mine.Instance && (ev.Kind == lockkeeper.EventAcquired || ev.Kind == lockkeeper.EventDenied) {
				return ev.Kind
			}
		}
	}
	return ""
}

// readAlong reads the file continuously.
func (o *outsider) readAlong() {
	for !o.isDone() {
		o.writing.Lock()
		text, err := os.ReadFile(o.s.path())
		o.writing.Unlock()
		if err == nil && !json.Valid(text) {
			o.s.t.Errorf("a reader found %q", text)
			return
		}
		time.Sleep(time.Millisecond)
	}
}
