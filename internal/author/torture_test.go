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
	"lockkeeper/internal/author"
	"lockkeeper/internal/bookfile"
	"lockkeeper/internal/process"
)

// writerVariable makes the test's own program one of the processes that claim.
const writerVariable = "LOCKKEEPER_TEST_WRITER"

// writer is what one of them is told.
type writer struct {
	Root, State, Marks string
	Number, Claims     int
	Seed               uint64
}

const (
	writers  = 16
	chapters = 40
)

// write claims and unclaims chapters until it has had so many.
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
		a, err := au.Claim(ctx, author.Want{By: by, Names: names, Mode: lockkeeper.Write})
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

// hold makes a mark for each chapter that nobody else may have at the same time.
func (w *writer) hold(names []string) error {
	for _, name := range names {
		f, err := os.OpenFile(filepath.Join(w.Marks, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("two hold %s", name)
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

// torture is how many times longer than usual random tests should run.
func torture() int {
	n, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE"))
	if err != nil {
		return 1
	}
	return max(1, n)
}

// Many processes claim, while another tool writes the file as it likes: never do two
// hold one chapter, the file is never anything but JSON by our doing, and each foreign
// claim is either taken up or put on record as a collision.
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
			alive, err := cmd.StdinPipe() // it ends with this program, however that ends
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
	t.Logf("%d claims by %d processes; %d foreign claims, of which %d were taken up and %d collided; %d came back", total, writers, o.claimed, o.takenUp, o.collided, o.cameBack)
	if o.claimed == 0 || len(s.listed()) != 0 || len(s.file()) != 0 {
		t.Errorf("%d foreign claims; left are %v and in the file %v", o.claimed, s.listed(), s.file())
	}
}

// outsider is a tool that knows nothing but the file.
type outsider struct {
	s      *study
	random *rand.Rand
	done   chan struct{}

	writing                    sync.Mutex // in place, where readers find what is not whole
	claimed, takenUp, collided int
	cameBack                   int
	seen                       uint64 // the last event
}

func (o *outsider) isDone() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// run claims a chapter that it sees free, or not, waits until that was noticed, and
// releases it.
func (o *outsider) run() {
	for n := 0; !o.isDone(); n++ {
		mine := bookfile.Entry{Resource: chapter(o.random.IntN(chapters)), Instance: fmt.Sprintf("Desktop-%d", n), Timestamp: time.Now().UTC().Format(time.RFC3339)}
		if !o.change(func(list []bookfile.Entry) []bookfile.Entry { return append(o.tidied(list), mine) }) {
			continue
		}
		o.claimed++
		switch kind := o.noticed(mine); kind {
		case lockkeeper.EventAcquired:
			o.takenUp++
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

// tidied leaves out what the tool has released and wrote back itself: it read the file
// in the moment in which its release had been overtaken and was not put right yet.
func (o *outsider) tidied(list []bookfile.Entry) []bookfile.Entry {
	rest := slices.DeleteFunc(slices.Clone(list), isOutsider)
	o.cameBack += len(list) - len(rest)
	return rest
}

// change reads the file, changes it and writes it back, as such tools do.
func (o *outsider) change(how func([]bookfile.Entry) []bookfile.Entry) bool {
	text, err := os.ReadFile(o.s.path())
	if err != nil {
		return false // it is not there yet
	}
	list, err := bookfile.Decode(text)
	if err != nil {
		o.s.t.Errorf("the file is not whole: %v", err)
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

// noticed is what the record says of a foreign claim. When all others have ended, a
// look of our own notices it.
func (o *outsider) noticed(mine bookfile.Entry) lockkeeper.EventKind {
	for limit := time.Now().Add(5 * time.Minute); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if o.isDone() {
			if _, _, err := o.s.Claims(context.Background()); err != nil {
				o.s.t.Error(err)
			}
		}
		events, err := o.s.app.Locks.Events(context.Background(), lockkeeper.EventQuery{After: o.seen, Limit: 1000})
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

// readAlong reads the file all the time.
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
