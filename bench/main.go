package main

import (
	"bufio"
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
	"syscall"
	"time"

	"lockkeeper/internal/agent/sandbox"
)

// A comparison measures one figure, or a few that share their set-up.
type comparison struct {
	name string
	run  func(*bench) []row
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
	{"postgres/many", postgresMany},
	{"wake/memory", wakeMemory},
	{"wake/sqlite", wakeSQLite},
	{"wake/postgres", wakePostgres},
	{"gate/write", gateWrite},
	{"gate/batch", gateBatch},
	{"gate/checks", gateChecks},
	{"queue/memory", queueMemory}, {"queue/sqlite", queueSQLite},
	{"workspace/make", workspaceMake}, {"workspace/layers", workspaceLayers},
	{"pipeline/large", pipelineLarge}, {"pipeline/slots", pipelineSlots}, {"pipeline/call", pipelineCall}, {"pipeline/resume", pipelineResume},
	{"lease/file", leaseFile},
	{"command/acquire", commandAcquire},
	{"hook/call", hookCall}, {"hook/compare", hookCompare}, {"hook/claude", hookClaude},
	{"view/state", viewState}, {"view/board", viewBoard},
	{"http/stream", httpStream}, {"http/state", httpState},
	{"simulate/order", simulateOrder},
	{"links/goldmark", linksGoldmark}, {"links/remark", linksRemark},
}

func main() {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{ctx: ctx, url: os.Getenv("LOCKKEEPER_TEST_POSTGRES")}
	name, do := "bench", b.run
	if len(os.Args) > 2 && os.Args[1] == "as" {
		name = "bench as " + os.Args[2]
		do = func() { roles[os.Args[2]](b, &parent{in: bufio.NewReader(os.Stdin)}, os.Args[3:]) }
	}
	if err := b.measure(do); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// A bench is the state of one run, in the main process or in a child process.
type bench struct {
	ctx      context.Context
	rounds   int
	dir      string // scratch directory, on a real disk
	url      string // URL of a PostgreSQL server; empty: there is none
	cleanups []func() error
}

func (b *bench) run() {
	only := flag.String("run", "", "measure only the comparisons whose name matches this `regexp`")
	flag.IntVar(&b.rounds, "rounds", 5, "compute each median over this number of rounds")
	asJSON := flag.Bool("json", false, "print JSON instead of a table")
	write := flag.Bool("write", false, "write the table to ../docs/benchmarks.md")
	flag.Parse()
	wanted := get(regexp.Compile(*only))
	if b.rounds < 1 || flag.NArg() > 0 {
		check(errors.New("usage: bench [-run REGEXP] [-rounds N] [-json] [-write]"))
	}
	if *write && *only != "" {
		check(errors.New("-write needs a whole run: remove -run"))
	}
	b.dir = get(scratch())
	defer os.RemoveAll(b.dir)
	rep := report{Machine: inspectMachine(b.dir), Rounds: b.rounds, Began: time.Now()}
	for _, c := range comparisons {
		if !wanted.MatchString(c.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s …\n", c.name)
		began := time.Now()
		var rows []row
		err := b.measure(func() { rows = c.run(b) })
		if skip, ok := errors.AsType[skipped](err); ok {
			rows = []row{{What: c.name, How: "Not measured: " + string(skip) + ".", Skipped: string(skip)}}
		} else if err != nil {
			check(fmt.Errorf("%s: %w", c.name, err))
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
		check(os.WriteFile(filepath.Join("..", "docs", "benchmarks.md"), rep.markdown(), 0o644))
	}
	if *asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		check(enc.Encode(rep))
		return
	}
	get(os.Stdout.WriteString(rep.text()))
}

// A skipped error says why this machine cannot make a comparison.
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
