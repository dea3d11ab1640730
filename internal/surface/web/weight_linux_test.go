package web

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/view"
	"lockkeeper/test/largerun"
)

// These are the limits of each page with 500 units and 10,000 calls. The time is that of all
// processors together. It is twice that of a quiet machine, because processors that other programs
// use as well need more time for the same work.
const (
	mostBytes = 150_000
	mostTime  = 2 * 300 * time.Millisecond
)

// Every page is light with a large run.
func TestWeights(t *testing.T) {
	r := largerun.New(t, largerun.Options{Units: 500, Calls: 10_000, Failures: 150, Plans: 120, Landings: 130})
	d, err := New(Options{App: r.App, View: r.View, Runs: r.Runs, Failed: func(err error) { t.Error(err) }})
	must(t, err)
	served := mux(d)
	ask := func(address string) (page *bytes.Buffer, took time.Duration) {
		request := httptest.NewRequest(http.MethodGet, address, nil)
		request = request.WithContext(access.With(request.Context(), access.Person{Name: "ada", Role: access.Admin}))
		w := httptest.NewRecorder()
		began := processTime(t)
		served.ServeHTTP(w, request)
		took = processTime(t) - began
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d: %s", address, w.Code, w.Body)
		}
		return w.Body, took
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-40s %9s %9s %9s %9s\n", "page", "bytes", "gzip", "first", "best")
	for _, address := range addressesOf(t, d, r.View) {
		page, first := ask(address)
		best := first
		for tries := 0; tries < 3 && best > mostTime; tries++ {
			_, took := ask(address)
			best = min(best, took)
		}
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, err := z.Write(page.Bytes())
		must(t, err, z.Close())
		fmt.Fprintf(&table, "%-40s %9d %9d %9s %9s\n", address, page.Len(), zipped.Len(), first.Round(time.Millisecond), best.Round(time.Millisecond))
		if page.Len() > mostBytes {
			t.Errorf("%s has %d bytes", address, page.Len())
		}
		if best > mostTime {
			t.Errorf("%s takes %s", address, best)
		}
	}
	t.Logf("\n%s", &table)
	must(t, os.WriteFile(t.ArtifactDir()+"/weights.txt", []byte(table.String()), 0o644))
}

// addressesOf returns an address of every page of a codebase.
func addressesOf(t *testing.T, d *Dashboard, look *view.Reader) (list []string) {
	t.Helper()
	items, err := look.Items(t.Context(), view.ItemsQuery{Limit: 1, Status: "dispatched"})
	must(t, err)
	it := items.Items[0]
	landings, err := look.Landings(t.Context(), view.LandingsQuery{Limit: 1})
	must(t, err)
	shelf, err := look.Rescue(t.Context())
	must(t, err)
	for _, route := range Routes() {
		if route.Method != http.MethodGet || route.Open {
			continue
		}
		address := strings.NewReplacer("/rescue/{id}", "/rescue/"+shelf.Entries[0].ID, "/unit/{name...}", d.toUnit("area001/page0001"), "/item/{name...}", d.toItem(it.ID, it.Workflow),
			"/log/{name...}", d.toLog(it.ID, it.Workflow), "/call/{name...}", d.toCall(it.ID, it.Workflow, 1), "/landing/{seq}", toLanding(landings.Landings[0].Seq), "{$}", "").Replace(route.Pattern)
		if !strings.Contains(address, "{") {
			list = append(list, address)
		}
	}
	return list
}

// processTime returns the time of processors that this process has used.
func processTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	must(t, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
