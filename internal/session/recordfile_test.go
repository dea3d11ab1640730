package session

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
)

// TestMain runs the process of TestKilledWhileWriting in place of the tests.
func TestMain(m *testing.M) {
	if file := os.Getenv("LOCKKEEPER_TEST_WRITES"); file != "" {
		for n := 0; ; n++ {
			if err := writeRecord(file, recordOfSize(n)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			if n == 20 {
				fmt.Println("writing")
			}
		}
	}
	os.Exit(m.Run())
}

// recordOfSize returns a record whose size and content depend on n.
func recordOfSize(n int) []byte {
	return fmt.Appendf(nil, `{"id":"%d","about":"%s"}`, n, bytes.Repeat([]byte{byte('a' + n%26)}, n*7919%20_000))
}

func checkWhole(t *testing.T, file string) {
	t.Helper()
	r, err := readRecord(file)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscan(r.ID, &n); err != nil {
		t.Fatal(err)
	}
	if want := n * 7919 % 20_000; len(r.About) != want || bytes.Count([]byte(r.About), []byte{byte('a' + n%26)}) != want {
		t.Fatalf("record %d is mixed: %d bytes instead of %d", n, len(r.About), want)
	}
}

// Readers never see a part of a record, however often it is written meanwhile.
func TestRecordIsReadWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	if err := writeRecord(file, recordOfSize(0)); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					checkWhole(t, file)
				}
			}
		})
	}
	for n := range 3000 {
		if err := writeRecord(file, recordOfSize(n)); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	readers.Wait()
	checkWhole(t, file)
}

// A reader that pauses still reads the record that it began to read.
func TestPausedReader(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	write := func(n int) {
		t.Helper()
		if err := writeRecord(file, recordOfSize(n)); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := filelock.Share(f); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		write(n + 2)
	}
	if text, err := io.ReadAll(f); err != nil || !bytes.Equal(text, recordOfSize(1)) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	checkWhole(t, file)
}

// A process that is killed at any moment leaves a whole record, with which the next one continues.
func TestKilledWhileWriting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	for range 20 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "LOCKKEEPER_TEST_WRITES="+file)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() // it was killed
		checkWhole(t, file)
	}
}

// A crash of the machine may damage a record, because records are not synced. The session ended with
// the machine, so a damaged record from before the start counts as none.
func TestRecordDamagedByCrash(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte(`{"id":"A","agent":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecord(file); lockkeeper.CodeOf(err) != lockkeeper.CodeStore {
		t.Errorf("damaged just now: %v", err)
	}
	long := time.Now().Add(-10 * 365 * 24 * time.Hour)
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	if r, err := readRecord(file); err != nil || r.ID != "" {
		t.Errorf("damaged before the start: %+v %v", r.Info, err)
	}
}
