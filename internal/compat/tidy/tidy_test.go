package tidy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/internal/compat/lease"
	"lockkeeper/internal/compat/tidy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plant creates files, each with its path as content.
func plant(t *testing.T, root string, paths ...string) {
	t.Helper()
	for _, p := range paths {
		file := filepath.Join(root, p)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(p), 0o644))
	}
}

// options returns options that move files without a gate. Tests of the command cover the gate.
func options(t *testing.T, root string) tidy.Options {
	return tidy.Options{
		Root: root, Owner: "tidy_up", Execute: true, Timeout: time.Minute, TTL: 30 * time.Minute,
		Check: func(context.Context, tidy.Transfer) string { return "" },
		Land: func(_ context.Context, _ string, moves []tidy.Transfer) (uint64, error) {
			for _, m := range moves {
				to := filepath.Join(root, m.To)
				if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(filepath.Join(root, m.From), to)); err != nil {
					return 0, err
				}
			}
			return 7, nil
		},
		Note: func(text string) { t.Log(text) },
	}
}

// moves lists the moves of a report.
func moves(r *tidy.Report) (list []string) {
	for _, ph := range r.Phases {
		for _, m := range ph.Moves {
			line := m.From + " " + m.To
			if m.Problem != "" {
				line += ": " + m.Problem
			}
			list = append(list, line)
		}
	}
	return list
}

func readQueue(t *testing.T, root string) (q struct{ Moves []tidy.Transfer }) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, tidy.QueueFile))
	must(t, err)
	must(t, json.Unmarshal(text, &q))
	return q
}

func TestWhatBelongsWhere(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "README.md", "LICENSE", "CHANGELOG.rst", "CLAUDE.md", "main.go", ".hidden.md", "Makefile", // stay in the root
		"NOTES.md", "Design.adoc", "run.LOG", "main.go.orig", "todo~", "TAKEN.md", "docs/TAKEN.md",
		"docs/api.md", "docs/deep/API_OLD.md", "docs/deep/api-deprecated.rst", "docs/x.bak", "docs/.git/y.bak", "docs/build.log",
		"archive/sorted/2025-01/x.md", "archive/BUILD_2025-12-01.md", "archive/20251105.txt", "archive/notes_2024_07.md", "archive/plain.md", "archive/12025-13-01.md")
	at := time.Date(2023, 5, 31, 23, 0, 0, 0, time.UTC)
	for _, p := range []string{"archive/plain.md", "archive/12025-13-01.md"} {
		must(t, os.Chtimes(filepath.Join(root, p), at, at))
	}
	must(t, os.Symlink("README.md", filepath.Join(root, "LINK.md")))
	must(t, os.Mkdir(filepath.Join(root, "DIR.md"), 0o755))
	opt := options(t, root)
	opt.Execute = false
	report, err := tidy.Run(t.Context(), opt)
	must(t, err)
	want := []string{
		"Design.adoc docs/Design.adoc", "NOTES.md docs/NOTES.md", "TAKEN.md docs/TAKEN.md: the target already exists",
		"main.go.orig archive/root/main.go.orig", "run.LOG archive/logs/run.LOG", "todo~ archive/root/todo~",
		"docs/build.log archive/docs/build.log", "docs/deep/API_OLD.md archive/docs/deep/API_OLD.md",
		"docs/deep/api-deprecated.rst archive/docs/deep/api-deprecated.rst", "docs/x.bak archive/docs/x.bak",
		"archive/12025-13-01.md archive/2023-05/12025-13-01.md", "archive/20251105.txt archive/2025-11/20251105.txt",
		"archive/BUILD_2025-12-01.md archive/2025-12/BUILD_2025-12-01.md", "archive/notes_2024_07.md archive/2024-07/notes_2024_07.md",
		"archive/plain.md archive/2023-05/plain.md",
	}
	if got := moves(report); !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// Old runs move to the archive, except the newest of each kind, and those that changed within a
// week. Files of a project or a tool, and files of no run, stay.
//
// shows: LE-1 LE-38
func TestOldRuns(t *testing.T) {
	root := t.TempDir()
	at := time.Now().Add(-30 * 24 * time.Hour).Truncate(time.Second)
	age := func(when time.Time, paths ...string) {
		plant(t, root, paths...)
		for _, p := range paths {
			for ; p != ".autonomous_runs"; p = filepath.Dir(p) {
				must(t, os.Chtimes(filepath.Join(root, p), when, when))
			}
		}
	}
	for i := range 12 {
		age(at.Add(time.Duration(i)*time.Hour), fmt.Sprintf(".autonomous_runs/build-%02d/executor.log", i))
	}
	age(at, ".autonomous_runs/build-00/errors/1.json", ".autonomous_runs/api.log", ".autonomous_runs/notes.md", ".autonomous_runs/pending_moves.json.corrupt.1.json",
		".autonomous_runs/project/docs/x.md", ".autonomous_runs/project/run.log", ".autonomous_runs/autopack/run.log", ".autonomous_runs/telemetry-1/x.log")
	age(time.Now(), ".autonomous_runs/build-01/executor.log", ".autonomous_runs/new.log")
	for i := range 12 {
		age(time.Now(), fmt.Sprintf(".autonomous_runs/week-%02d/executor.log", i))
	}
	opt := options(t, root)
	opt.Only = []string{"runs"}
	land := opt.Land
	opt.Land = func(ctx context.Context, reason string, moves []tidy.Transfer) (uint64, error) {
		info, err := lease.Inspect(filepath.Join(root, lease.Dir, "runs.lock"), lease.Defaults())
		if err != nil || info.State != lease.Held {
			t.Errorf("the lease of the runs is %v, %v", info, err)
		}
		return land(ctx, reason, moves)
	}
	report, err := tidy.Run(t.Context(), opt)
	must(t, err)
	want := []string{".autonomous_runs/api.log archive/runs/api.log", ".autonomous_runs/build-00/errors/1.json archive/runs/build-00/errors/1.json",
		".autonomous_runs/build-00/executor.log archive/runs/build-00/executor.log", ".autonomous_runs/build-02/executor.log archive/runs/build-02/executor.log"}
	if got := moves(report); !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	if _, err := os.Stat(filepath.Join(root, ".autonomous_runs/build-00")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of a moved run: %v", err)
	}
	free(t, root)
}

// shows: LE-17 LE-19 LE-20 LE-30 LE-41
func TestRun(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "NOTES.md", "docs/x.bak", "archive/2025-12.md")
	opt := options(t, root)
	land := opt.Land
	var phases []string
	opt.Land = func(ctx context.Context, reason string, moves []tidy.Transfer) (uint64, error) {
		info, err := lease.Inspect(filepath.Join(root, lease.Default), lease.Defaults())
		must(t, err)
		if info.State != lease.Held || info.Holders[0].Renewals != len(phases)+1 {
			t.Errorf("the lease is %+v", info)
		}
		phases = append(phases, info.Holders[0].Phase)
		if q := readQueue(t, root); len(q.Moves) != 1 || q.Moves[0].From != moves[0].From {
			t.Errorf("the queue has %+v", q)
		}
		return land(ctx, reason, moves)
	}
	report, err := tidy.Run(t.Context(), opt)
	must(t, err)
	if want := []string{"root routing", "docs hygiene", "archive consolidation"}; !slices.Equal(phases, want) {
		t.Errorf("phases were %q", phases)
	}
	if report.Lease.Renewals != 4 || !report.Leased || report.Phases[0].Landing != 7 {
		t.Errorf("reported %+v", report)
	}
	if q := readQueue(t, root); len(q.Moves) != 0 {
		t.Errorf("the queue has %+v", q)
	}
	free(t, root)
}

// free checks that no lease file is left.
func free(t *testing.T, root string) {
	t.Helper()
	left, err := lease.List(filepath.Join(root, lease.Dir), lease.Defaults())
	if err != nil || len(left) != 0 {
		t.Errorf("lease files are left: %v, %v", left, err)
	}
}

// However a run ends, it releases its lease file and leaves its planned moves in the queue.
//
// shows: LE-19
func TestRunFails(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "NOTES.md", "TAKEN.md", "docs/TAKEN.md", "docs/x.bak")
	opt := options(t, root)
	opt.Land = func(context.Context, string, []tidy.Transfer) (uint64, error) { return 0, errors.New("no power") }
	report, err := tidy.Run(t.Context(), opt)
	if err == nil || err.Error() != "root routing: no power" {
		t.Errorf("got %v", err)
	}
	if len(report.Phases) != 1 || report.Phases[0].Moves[0].Moved || report.Phases[0].Moves[0].Problem != "no power" {
		t.Errorf("reported %+v", report)
	}
	q := readQueue(t, root)
	if len(q.Moves) != 2 || q.Moves[0].Problem != "no power" || q.Moves[0].Attempts != 1 || !strings.Contains(q.Moves[1].Problem, "already") {
		t.Errorf("the queue has %+v", q)
	}
	free(t, root)
	func() {
		defer func() { recover() }()
		opt.Land = func(context.Context, string, []tidy.Transfer) (uint64, error) { panic("worse") }
		tidy.Run(t.Context(), opt)
	}()
	free(t, root)

	opt = options(t, root)
	opt.Execute = false
	report, err = tidy.Run(t.Context(), opt)
	must(t, err)
	if m := report.Phases[0].Moves[0]; m.Attempts != 1 || !strings.Contains(m.Reason, "failed before: no power") {
		t.Errorf("a dry run says %+v", m)
	}
}

// A phase with locked files does not fail the run: each file is reported with its own
// holder.
func TestPhaseIsBlocked(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "A.md", "B.md", "C.md", "docs/x.bak")
	opt := options(t, root)
	land, at := opt.Land, time.Date(2026, 1, 3, 12, 0, 0, 0, time.UTC)
	opt.Land = func(ctx context.Context, reason string, moves []tidy.Transfer) (uint64, error) {
		if reason != "tidy: root routing" {
			return land(ctx, reason, moves)
		}
		return 0, &lockkeeper.BlockedError{Conflicts: []lockkeeper.ConflictInfo{
			{Path: "A.md", Holder: "otter", GrantID: "g-1", AcquiredAt: at}, {Path: "docs/B.md", Holder: "fox", GrantID: "g-2", AcquiredAt: at}}}
	}
	report, err := tidy.Run(t.Context(), opt)
	must(t, err)
	want := []string{
		"A.md docs/A.md: A.md is held by otter since 2026-01-03T12:00:00Z", "B.md docs/B.md: docs/B.md is held by fox since 2026-01-03T12:00:00Z",
		"C.md docs/C.md: other files of this phase are locked, and a phase moves all or none", "docs/x.bak archive/docs/x.bak",
	}
	if got := moves(report); !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	if q := readQueue(t, root); len(q.Moves) != 3 || q.Moves[0].Problem != "A.md is held by otter since 2026-01-03T12:00:00Z" {
		t.Errorf("the queue has %+v", q)
	}
	free(t, root)
}

// A dry run that only reads works beside another run and reports it.
//
// shows: LE-40
func TestReadingBesideARun(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "NOTES.md", "docs/x.bak")
	whole, land := options(t, root), options(t, root).Land
	whole.Owner = "nightly"
	whole.Land = func(ctx context.Context, reason string, moves []tidy.Transfer) (uint64, error) {
		dry, told := options(t, root), ""
		dry.Execute, dry.Read, dry.Timeout, dry.Note = false, true, 0, func(text string) { told += text }
		report, err := tidy.Run(ctx, dry)
		if err != nil || !report.Leased || len(report.Phases) != len(tidy.Phases()) || !strings.Contains(told, "another run is active and may move the files shown here: nightly (pid ") {
			t.Errorf("while another run works: %+v, %q, %v", report, told, err)
		}
		return land(ctx, reason, moves)
	}
	_, err := tidy.Run(t.Context(), whole)
	must(t, err)
	free(t, root)
}

// A lost lease file ends the run before anything more is moved. A failed renewal does
// not.
//
// shows: LE-8 LE-21 CF-11
func TestLeaseIsLost(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "NOTES.md", "docs/x.bak")
	opt := options(t, root)
	land := opt.Land
	file := filepath.Join(root, lease.Default)
	opt.Land = func(ctx context.Context, reason string, moves []tidy.Transfer) (uint64, error) {
		must(t, os.WriteFile(file, []byte(`{"token": "thief", "owner": "thief", "expires_at": "2126-01-03T12:00:00Z"}`), 0o644))
		return land(ctx, reason, moves)
	}
	report, err := tidy.Run(t.Context(), opt)
	var lost *lease.LostError
	if !errors.As(err, &lost) || lost.Now.Owner != "thief" || lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
		t.Errorf("got %v", err)
	}
	if len(report.Phases) != 2 || !report.Phases[0].Moves[0].Moved || len(report.Phases[1].Moves) != 0 {
		t.Errorf("reported %+v", report)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "thief") {
		t.Errorf("the thief's lease file is %s, %v", text, err)
	}
	must(t, os.Remove(file))

	opt = options(t, root)
	land = opt.Land
	var notes []string
	opt.Note = func(text string) { notes = append(notes, text) }
	draft := filepath.Join(root, lease.Dir, ".tidy.lock.new")
	opt.Only = nil
	plant(t, root, "MORE.md")
	opt.Land = func(ctx context.Context, reason string, moves []tidy.Transfer) (uint64, error) {
		if reason == "tidy: root routing" {
			must(t, os.Mkdir(draft, 0o755)) // renewals cannot be written
		}
		return land(ctx, reason, moves)
	}
	report, err = tidy.Run(t.Context(), opt)
	must(t, err)
	if len(notes) != 3 || !strings.Contains(notes[0], "could not be renewed; the run continues") || report.Lease.Failures != 3 || !report.Phases[1].Moves[0].Moved {
		t.Errorf("said %q, reported %+v", notes, report)
	}
}

// With many concurrent runs without a lease file, the queue file is always complete, and
// no run loses moves of another.
//
// shows: LE-1 LE-30 LE-50
func TestQueueIsNeverTorn(t *testing.T) {
	const runs, files = 6, 4
	root := t.TempDir()
	for n := range files {
		plant(t, root, fmt.Sprintf("N%d.md", n), fmt.Sprintf("docs/D%d.bak", n), fmt.Sprintf("archive/A%d_2025-12.md", n))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			text, err := os.ReadFile(filepath.Join(root, tidy.QueueFile))
			if err == nil && !json.Valid(text) {
				t.Errorf("the queue is incomplete: %s", text)
			}
		}
	})
	var running sync.WaitGroup
	for n := range runs {
		running.Go(func() {
			opt := options(t, root)
			opt.NoLease = true
			opt.Only = []string{tidy.Phases()[n%3].Name}
			opt.Land = func(context.Context, string, []tidy.Transfer) (uint64, error) { return 0, errors.New("not now") }
			if _, err := tidy.Run(t.Context(), opt); err == nil || !strings.Contains(err.Error(), "not now") {
				t.Errorf("got %v", err)
			}
		})
	}
	running.Wait()
	cancel()
	reading.Wait()
	q := readQueue(t, root)
	if len(q.Moves) != 3*files {
		t.Errorf("%d of %d moves are in the queue", len(q.Moves), 3*files)
	}
	for _, m := range q.Moves {
		if m.Attempts != runs/3 {
			t.Errorf("%s was tried %d times", m.From, m.Attempts)
		}
	}
}

// A damaged queue is kept, and a new one is created.
//
// shows: LE-28 CF-38
func TestDamagedQueue(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "NOTES.md", tidy.QueueFile)
	opt := options(t, root)
	opt.Execute = false
	_, err := tidy.Run(t.Context(), opt) // a dry run
	must(t, err)
	opt = options(t, root)
	_, err = tidy.Run(t.Context(), opt)
	must(t, err)
	kept, err := filepath.Glob(filepath.Join(root, tidy.QueueFile+".corrupt.*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept %q, %v", kept, err)
	}
	if q := readQueue(t, root); len(q.Moves) != 0 {
		t.Errorf("the queue has %+v", q)
	}
}

// Runs of different phases run concurrently; a run of all phases waits for them.
//
// shows: LE-38 LE-39 LE-47
func TestPhasesSideBySide(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "NOTES.md", "docs/x.bak", "archive/2025-12.md")
	outer, land := options(t, root), options(t, root).Land
	outer.Only = []string{"archive"}
	outer.Land = func(ctx context.Context, reason string, moves []tidy.Transfer) (uint64, error) {
		inner := options(t, root)
		inner.Only, inner.Timeout = []string{"root", "docs"}, 0
		if _, err := tidy.Run(ctx, inner); err != nil {
			t.Errorf("beside the archive: %v", err)
		}
		inner.Only = []string{"archive"}
		plant(t, root, "archive/2025-11.md")
		if info, err := lease.Inspect(filepath.Join(root, lease.Dir, "archive.lock"), lease.Defaults()); err != nil || info.State != lease.Held {
			t.Errorf("the lease of the archive is %v, %v", info, err)
		}
		if _, err := tidy.Run(ctx, inner); lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
			t.Errorf("the same phase: %v", err)
		}
		inner.Only = nil
		if _, err := tidy.Run(ctx, inner); lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
			t.Errorf("a whole run: %v", err)
		}
		return land(ctx, reason, moves)
	}
	_, err := tidy.Run(t.Context(), outer)
	must(t, err)
	for _, moved := range []string{"docs/NOTES.md", "archive/docs/x.bak", "archive/2025-12/2025-12.md"} {
		if _, err := os.Stat(filepath.Join(root, moved)); err != nil {
			t.Error(err)
		}
	}
	free(t, root)
}
