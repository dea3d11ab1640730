package gate_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/store"
	"lockkeeper/store/sqlstore"
	"lockkeeper/store/storetest"
)

const (
	writerEnv = "LOCKKEEPER_TEST_WRITER" // makes the test binary run as one writer; contains its root, files and seed
	writers   = 8
	contested = 200 // number of paths
)

func contestedPath(n int) string { return fmt.Sprintf("test/%d/%03d.rb", n%10, n) }

// sealed returns random content with a checksum, so that a reader can tell whether it is whole.
func sealed(draw *rand.Rand) []byte {
	body := make([]byte, draw.IntN(16<<10))
	for i := range body {
		body[i] = byte(draw.Uint32())
	}
	sum := sha256.Sum256(body)
	return append([]byte(hex.EncodeToString(sum[:])), body...)
}

func isWhole(content []byte) bool {
	const size = 2 * sha256.Size
	if len(content) < size {
		return false
	}
	sum := sha256.Sum256(content[size:])
	return string(content[:size]) == hex.EncodeToString(sum[:])
}

// shareWorld opens a tree whose lock database several processes share.
func shareWorld(t *testing.T, root string) *world {
	t.Helper()
	st, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(root, ".lockkeeper", "locks.db"), space, sqlstore.Options{Busy: time.Minute})
	must(t, err)
	t.Cleanup(func() { must(t, st.Close()) })
	w := &world{t: t, dir: root, store: st}
	w.open(gate.Options{})
	return w
}

// writeOn runs one of the writers of TestManyProcesses.
func writeOn(t *testing.T, told string) {
	parts := strings.Split(told, "|")
	files, err := strconv.Atoi(parts[1])
	must(t, err)
	seed, err := strconv.ParseUint(parts[2], 10, 64)
	must(t, err)
	draw := rand.New(rand.NewPCG(seed, 2))
	w := shareWorld(t, parts[0])
	for files > 0 {
		req := lockkeeper.Request{Holder: "writer " + parts[2]}
		var changes []gate.Change
		for _, n := range draw.Perm(contested)[:min(files, 1+draw.IntN(5))] {
			path := contestedPath(n)
			req.Locks = append(req.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
			change := gate.Put(path, sealed(draw))
			if draw.IntN(20) == 0 {
				change = gate.Delete(path)
			}
			changes = append(changes, change)
		}
		files -= len(changes)
		g, err := w.locks.Acquire(t.Context(), req, time.Minute)
		must(t, err)
		w.commit(g, changes...)
		must(t, g.Release(t.Context()))
	}
}

// Many processes write under grants while another process reads. No read is torn, and in the
// end every file has the content of the latest landing of its path.
//
// shows: SW-33 SW-38 GP-4 LE-26 DL-49
func TestManyProcesses(t *testing.T) {
	if told := os.Getenv(writerEnv); told != "" {
		writeOn(t, told)
		return
	}
	total := min(1_000*storetest.Torture(), 10_000)
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, ".lockkeeper"), 0o700), os.Mkdir(filepath.Join(root, "test"), 0o755),
		sqlstore.CreateSQLite(t.Context(), filepath.Join(root, ".lockkeeper", "locks.db"), space))
	seed := rand.Uint64N(1 << 32)
	t.Logf("seed %d, %d files", seed, total)
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	reads := make(chan int, 1)
	go func() { reads <- readAll(ctx, t, root) }()
	ended := make(chan error, writers)
	for n := range writers {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestManyProcesses$", "-test.timeout=10m")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%d", writerEnv, root, total/writers, seed+uint64(n)))
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			ended <- err
		}()
	}
	for range writers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	stop()
	t.Logf("%d whole reads beside it; %s", <-reads, time.Since(began).Round(time.Millisecond))

	w := shareWorld(t, root)
	w.noStages()
	if r, err := w.gate.Recover(t.Context()); err != nil || len(r.Finished)+len(r.Undone)+r.Cleared > 0 {
		t.Errorf("there was something to recover: %+v, %v", r, err)
	}
	accounted(t, w)
}

// readAll reads random files until ctx ends and returns how many it found. It pauses between
// reads so that the writers make progress.
func readAll(ctx context.Context, t *testing.T, root string) (found int) {
	turn := time.NewTicker(2 * time.Millisecond)
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			return found
		case <-turn.C:
		}
		for range 10 {
			path := contestedPath(rand.IntN(contested))
			content, err := os.ReadFile(filepath.Join(root, path))
			switch {
			case errors.Is(err, fs.ErrNotExist): // not created yet, or deleted
			case err != nil:
				t.Error(err)
				return found
			case !isWhole(content):
				t.Errorf("%s: a torn read of %d bytes", path, len(content))
				return found
			default:
				found++
			}
		}
	}
}

// accounted checks that all landings are committed and that the tree has the content of the
// latest landing of each path.
func accounted(t *testing.T, w *world) {
	t.Helper()
	files := w.files()
	must(t, w.store.View(t.Context(), func(r store.Reader) error {
		landings, err := r.Landings(store.LandingQuery{})
		if err != nil {
			return err
		}
		for _, l := range landings {
			if l.State != lockkeeper.Committed {
				t.Errorf("landing %d of %s is %s", l.Seq, l.Holder, l.State)
			}
		}
		var paths []string
		for n := range contested {
			paths = append(paths, contestedPath(n))
		}
		landed, err := r.Landed("", paths...)
		if err != nil {
			return err
		}
		for _, path := range paths {
			left := landed[path].Version
			content, there := files[path]
			delete(files, path)
			if there != left.Exists() || there && sha256.Sum256([]byte(content)) != left.Sum {
				t.Errorf("%s is not what was landed last: there %t, %s", path, there, left)
			}
		}
		return nil
	}))
	for path := range files {
		t.Errorf("%s was not landed", path)
	}
}
