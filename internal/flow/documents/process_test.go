package documents

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// children returns the functions that the test binary can run as a child process.
func children() map[string]func(args []string) error {
	return map[string]func(args []string) error{"record": recordMany, "count": countUp, "hold": holdLock}
}

// child starts the test binary as another process.
func child(t *testing.T, args ...string) (cmd *exec.Cmd, in io.Closer, out *bufio.Scanner) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], append([]string{childArg}, args...)...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, stdin, bufio.NewScanner(stdout)
}

// recordMany records a decision on one item after the other, and a second one on every third
// item. It prints each recorded decision.
func recordMany(args []string) error {
	s, controller := Open(args[0]), args[1]
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	for i := range count {
		e := PastDecision{Description: fmt.Sprintf("item %d", i), Controller: controller, Decision: Deferred, Timestamp: at(0).Add(time.Duration(i) * time.Second)}
		if err := s.Record(context.Background(), e); err != nil {
			return err
		}
		fmt.Println(i, Deferred)
		if i%3 == 0 {
			e.Decision, e.Timestamp = Rejected, e.Timestamp.Add(time.Millisecond)
			if err := s.Record(context.Background(), e); err != nil {
				return err
			}
			fmt.Println(i, Rejected)
		}
	}
	return nil
}

// shows: GP-22 PL-66
func TestNoDecisionIsLostWhenProcessesDie(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	const processes, each = 8, 24
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := fresh(t)
	acknowledged := make([]map[string]string, processes) // by controller: item to decision
	var all sync.WaitGroup
	for p := range processes {
		acknowledged[p] = map[string]string{}
		cmd, _, out := child(t, "record", s.Dir(), fmt.Sprintf("c%d", p), strconv.Itoa(each))
		lives := each * 2
		if p%2 == 0 {
			lives = random.IntN(each)
		}
		pause := time.Duration(random.IntN(3000)) * time.Microsecond // to hit the next write
		all.Go(func() {
			for n := 0; out.Scan(); n++ {
				i, decision, _ := strings.Cut(out.Text(), " ")
				acknowledged[p]["item "+i] = decision
				if n == lives {
					time.AfterFunc(pause, func() { cmd.Process.Kill() })
				}
			}
			if err := cmd.Wait(); err != nil && lives > each {
				t.Errorf("process %d: %v", p, err)
			}
		})
	}
	all.Wait()
	is := map[string]map[string]string{}
	for _, e := range prior(t, s) {
		if is[e.Controller] == nil {
			is[e.Controller] = map[string]string{}
		}
		if before := is[e.Controller][e.Description]; before != "" {
			t.Errorf("%s: %s is %s and %s", e.Controller, e.Description, before, e.Decision)
		}
		is[e.Controller][e.Description] = e.Decision
	}
	for p, items := range acknowledged {
		controller := fmt.Sprintf("c%d", p)
		beyond := len(is[controller]) - len(items) // one write may have been in progress at the kill
		for item, decision := range items {
			switch got := is[controller][item]; {
			case got == decision:
			case got == Rejected:
				beyond++
			default:
				t.Errorf("%s: %s is %q, and %s was acknowledged", controller, item, got, decision)
			}
		}
		if beyond > 1 || p%2 == 1 && (beyond != 0 || len(items) != each) {
			t.Errorf("%s: %d items acknowledged, %d there, %d beyond that", controller, len(items), len(is[controller]), beyond)
		}
	}
	if left := leftovers(t, s.Dir()); len(left) > processes/2 {
		t.Errorf("more temporary files than kills: %q", left)
	}
}

// countUp increments the number in a document the given number of times.
func countUp(args []string) error {
	times, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return addUp(context.Background(), Open(args[0]), times)
}

func addUp(ctx context.Context, s *Store, times int) error {
	f := s.Unit("posts")
	for done := 0; done < times; {
		was, err := f.Read(ctx, "analysis.json", checkResult)
		if err != nil {
			return err
		}
		var r result
		if was != nil {
			if err := json.Unmarshal(was.Body, &r); err != nil {
				return err
			}
		}
		r.Count++
		_, err = f.Replace(ctx, was, "analysis.json", r, About{})
		var changed *ChangedError
		if err != nil && !errors.As(err, &changed) {
			return err
		}
		if err == nil {
			done++
		}
	}
	return nil
}

// shows: CF-30
func TestReplaceNeverUndoesAnother(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	const each = 15
	s := fresh(t)
	stores := []*Store{s, Open(s.Dir())}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			if err := addUp(t.Context(), stores[i%2], each); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		cmd, _, _ := child(t, "count", s.Dir(), strconv.Itoa(each))
		all.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var r result
	doc, err := s.Unit("posts").Read(t.Context(), "analysis.json", nil)
	must(t, err)
	must(t, json.Unmarshal(doc.Body, &r))
	if r.Count != 8*each {
		t.Errorf("%d of %d were lost", 8*each-r.Count, 8*each)
	}
}

// holdLock holds the lock until its standard input ends.
func holdLock(args []string) error {
	if _, err := Open(args[0]).lock(context.Background()); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// shows: GP-22 CF-30
func TestTheLockOfADeadProcessIsFree(t *testing.T) {
	s := fresh(t)
	cmd, in, out := child(t, "hold", s.Dir())
	defer in.Close()
	if !out.Scan() {
		t.Fatal("it has not locked")
	}
	write := func(ctx context.Context) error {
		_, err := s.Unit("posts").Write(ctx, "analysis.json", result{}, About{})
		return err
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for range 2 { // during the second call the first still waits in the kernel
		if err := write(short); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), lockFile) {
			t.Errorf("got %v", err)
		}
		short, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
	}
	if doc, err := s.Unit("posts").Read(t.Context(), "analysis.json", nil); doc != nil || err != nil {
		t.Errorf("written without the lock, or a reader waits: %v, %v", doc, err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- write(t.Context()) }()
	must(t, cmd.Process.Kill())
	cmd.Wait()
	must(t, <-waiting)
	gone, stop := context.WithCancel(t.Context())
	stop()
	if err := write(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// If the lock file is replaced, a waiting process waits for the new one.
//
// shows: GP-22
func TestALockFileThatIsReplaced(t *testing.T) {
	s, other := fresh(t), Open(filepath.Join(t.TempDir(), "other"))
	first, err := Open(s.Dir()).lock(t.Context())
	must(t, err)
	second, err := other.lock(t.Context())
	must(t, err)
	released := make(chan struct{})
	waiting := make(chan error, 1)
	go func() {
		f, err := s.lock(t.Context())
		if err == nil {
			err = s.unlock(f)
		}
		select {
		case <-released:
		default:
			err = errors.Join(err, errors.New("it did not wait"))
		}
		waiting <- err
	}()
	must(t, os.Rename(filepath.Join(other.Dir(), lockFile), filepath.Join(s.Dir(), lockFile)))
	must(t, first.Close())
	close(released)
	must(t, second.Close())
	must(t, <-waiting)
}
