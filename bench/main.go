package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"time"
)

// comparison measures one thing, or a few that share their set-up.
type comparison struct {
	name string
	run  func(context.Context, *bench) ([]row, error)
}

var comparisons = []comparison{
	{"memory/map", memoryMap},
	{"memory/growth", memoryGrowth},
	{"memory/scan", memoryScan},
	{"memory/webdav", memoryWebdav},
	{"memory/waiters", memoryWaiters},
	{"memory/bytes", memoryBytes},
	{"sqlite/minimal", sqliteMinimal},
	{"sqlite/growth", sqliteGrowth},
	{"sqlite/processes", sqliteProcesses},
	{"postgres/minimal", postgresMinimal},
	{"postgres/growth", postgresGrowth},
	{"postgres/spaces", postgresSpaces},
	{"postgres/space", postgresOneSpace},
	{"wake/memory", wakeMemory},
	{"wake/sqlite", wakeSQLite},
	{"wake/postgres", wakePostgres},
	{"gate/write", gateWrite},
	{"gate/batch", gateBatch},
	{"gate/checks", gateChecks},
	{"queue/memory", queueMemory}, {"queue/sqlite", queueSQLite},
	{"workspace/make", workspaceMake}, {"workspace/crowd", workspaceCrowd},
	{"pipeline/large", pipelineLarge}, {"pipeline/call", pipelineCall},
	{"lease/file", leaseFile},
	{"command/acquire", commandAcquire},
	{"hook/call", hookCall}, {"hook/compare", hookCompare},
	{"view/state", viewState}, {"view/board", viewBoard},
	{"http/stream", httpStream}, {"http/state", httpState},
	{"simulate/order", simulateOrder},
	{"links/goldmark", linksGoldmark}, {"links/remark", linksRemark},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 2 && os.Args[1] == "as" {
		if err := runAs(ctx, os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintf(os.Stderr, "bench as %s: %v\n", os.Args[2], err)
			os.Exit(1)
		}
		return
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	rounds int
	dir    string // scratch, on a real disk
	url    string // of a PostgreSQL server; "" for none
}

func run(ctx context.Context) (err error) {
	only := flag.String("run", "", "measure only the comparisons whose name matches this `regexp`")
	rounds := flag.Int("rounds", 5, "how many rounds of turns a median is taken over")
	asJSON := flag.Bool("json", false, "print JSON instead of a table")
	write := flag.Bool("write", false, "write the table to ../docs/benchmarks.md")
	profile := flag.String("cpuprofile", "", "write a CPU profile of this process to `file`")
	flag.Parse()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if *rounds < 1 || flag.NArg() > 0 {
		return errors.New("usage: bench [-run REGEXP] [-rounds N] [-json] [-write] [-cpuprofile FILE]")
	}
	if *write && *only != "" {
		return errors.New("-write needs a whole run: leave -run out")
	}
	dir, err := scratch()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	b := &bench{rounds: *rounds, dir: dir, url: os.Getenv("LOCKKEEPER_TEST_POSTGRES")}
	rep := report{Machine: inspectMachine(dir), Rounds: *rounds, Began: time.Now()}
	for _, c := range comparisons {
		if !wanted.MatchString(c.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s …\n", c.name)
		began := time.Now()
		rows, err := c.run(ctx, b)
		var skip skipped
		switch {
		case errors.As(err, &skip):
			rows = []row{{What: c.name, How: "Not measured: " + string(skip) + ".", Skipped: string(skip)}}
		case err != nil:
			return fmt.Errorf("%s: %w", c.name, err)
		}
		for i := range rows {
			rows[i].Name = c.name
		}
		rep.Rows = append(rep.Rows, rows...)
		fmt.Fprintf(os.Stderr, "bench: %s took %.1f s\n", c.name, time.Since(began).Seconds())
		debug.FreeOSMemory() // the next comparison begins with an empty heap
	}
	rep.Machine.LoadAfter = loadAverage()
	rep.Took = time.Since(rep.Began)
	if *write {
		if err := os.WriteFile(filepath.Join("..", "docs", "benchmarks.md"), rep.markdown(), 0o644); err != nil {
			return err
		}
	}
	if *asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(rep)
	}
	_, err = os.Stdout.WriteString(rep.text())
	return err
}

// skipped is why a comparison could not be made here.
type skipped string

func (s skipped) Error() string { return string(s) }

// scratch makes a directory on a real disk. On a memory file system fsync is free, which would
// favor the side that calls it more often.
func scratch() (string, error) {
	dir, err := os.MkdirTemp("", "lockkeeper-bench-")
	if err != nil || runtime.GOOS != "linux" || fileSystem(dir) != "tmpfs" {
		return dir, err
	}
	if err := os.Remove(dir); err != nil {
		return "", err
	}
	return os.MkdirTemp(".", "tmp-bench-")
}
