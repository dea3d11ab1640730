package api

import (
	"errors"
	"os"
	"runtime"
	runtimemetrics "runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lockkeeper/internal/encoding/promtext"
)

// addProcess adds what this process uses, under the names that collectors of Prometheus know. With an
// error, the page has a part of it.
func addProcess(p *promtext.Page) error {
	p.Gauge(float64(runtime.NumGoroutine()), "go_goroutines", "Goroutines that exist.")
	p.Gauge(1, "go_info", "The version of Go.", "version", runtime.Version())
	samples := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/objects:objects"}, {Name: "/memory/classes/total:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	runtimemetrics.Read(samples)
	p.Gauge(float64(samples[0].Value.Uint64()), "go_memstats_heap_alloc_bytes", "Bytes of objects on the heap.")
	p.Gauge(float64(samples[1].Value.Uint64()), "go_memstats_heap_objects", "Objects on the heap.")
	p.Gauge(float64(samples[2].Value.Uint64()), "go_memstats_sys_bytes", "Memory that the Go runtime has mapped.")
	p.Count(float64(samples[3].Value.Uint64()), "go_gc_cycles_total", "Completed cycles of the garbage collector.")

	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	if err == nil {
		spent := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		p.Count(spent.Seconds(), "process_cpu_seconds_total", "Processor time of the process.")
	}
	return errors.Join(err, addMemory(p), addFiles(p))
}

// addMemory adds the memory of the process. See proc_pid_statm(5).
func addMemory(p *promtext.Page) error {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	for i, pages := range strings.Fields(string(text))[:2] {
		n, err := strconv.ParseUint(pages, 10, 64)
		if err != nil {
			return err
		}
		name, help := "process_virtual_memory_bytes", "Virtual memory of the process."
		if i == 1 {
			name, help = "process_resident_memory_bytes", "Memory of the process that is in RAM."
		}
		p.Gauge(float64(n)*float64(os.Getpagesize()), name, help)
	}
	return nil
}

// addFiles adds the open files of the process, and how many it may have.
func addFiles(p *promtext.Page) error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	p.Gauge(float64(len(open)), "process_open_fds", "Open files of the process.")
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	p.Gauge(float64(limit.Cur), "process_max_fds", "Open files that the process may have.")
	return nil
}
