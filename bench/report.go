package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// A row is one line of the table.
type row struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Ours    string  `json:"ours"`
	Peer    string  `json:"peer"`
	Value   float64 `json:"value"` // the value that is compared with the target
	Ratio   string  `json:"ratio"` // Value, formatted
	Target  string  `json:"target"`
	Met     bool    `json:"met"`
	How     string  `json:"how"`
	Skipped string  `json:"skipped,omitempty"`
}

// atMost and atLeast compare a value with its limit. format prints both.
func (r row) atMost(value, limit float64, format string) row {
	r.Value, r.Ratio, r.Target, r.Met = value, fmt.Sprintf(format, value), "≤ "+fmt.Sprintf(format, limit), value <= limit
	return r
}

func (r row) atLeast(value, limit float64, format string) row {
	r.Value, r.Ratio, r.Target, r.Met = value, fmt.Sprintf(format, value), "≥ "+fmt.Sprintf(format, limit), value >= limit
	return r
}

func (r row) met() string {
	switch {
	case r.Skipped != "":
		return "not measured"
	case r.Met:
		return "yes"
	}
	return "no"
}

// A report has the results of one run.
type report struct {
	Machine machine       `json:"machine"`
	Began   time.Time     `json:"began"`
	Took    time.Duration `json:"took_ns"`
	Rounds  int           `json:"rounds"`
	Rows    []row         `json:"rows"`
}

// A machine describes what the figures depend on, apart from the code.
type machine struct {
	Cores      int    `json:"cores"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
	FileSystem string `json:"file_system"`
	LoadBefore string `json:"load_before"`
	LoadAfter  string `json:"load_after"`
}

func inspectMachine(dir string) machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH, FileSystem: fileSystem(dir), LoadBefore: loadAverage()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	return m
}

func fileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "unknown"
	}
	known := map[int64]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.TMPFS_MAGIC: "tmpfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.XFS_SUPER_MAGIC: "xfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs"}
	return cmp.Or(known[st.Type], fmt.Sprintf("type %#x", st.Type))
}

// loadAverage returns the load of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

func (m machine) String() string {
	return fmt.Sprintf("%d cores, %s, %s, %s; load average %s before and %s after", m.Cores, m.Kernel, m.Go, m.FileSystem, m.LoadBefore, m.LoadAfter)
}

func (r report) text() string {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tours\tpeer\tratio\ttarget\tmet")
	for _, l := range r.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.What, l.Ours, l.Peer, l.Ratio, l.Target, l.met())
	}
	w.Flush()
	for _, l := range r.Rows {
		if l.Skipped != "" {
			fmt.Fprintf(&out, "%s was not measured: %s\n", l.What, l.Skipped)
		}
	}
	fmt.Fprintf(&out, "\n%s; medians over %d rounds, %.0f s in all\n", r.Machine, r.Rounds, r.Took.Seconds())
	return out.String()
}

func (r report) markdown() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `# Benchmarks

After reading this page you know how fast Lockkeeper is compared with its peers, and you can measure it on your machine:

    make bench                   # prints this table
    make bench BENCH=-write      # renews this page

Measured on %s: %s.

Each line compares Lockkeeper with a peer, or with a target alone. The list below describes them. Both sides are measured in the
same run, in short slices that alternate. Unless the list says otherwise, a figure is the median over %d rounds of turns.
A ratio is the median of the ratios of neighboring slices. Both sides write to the same disk with the same durability.

| what | ours | peer | ratio | target | met |
|---|---|---|---|---|---|
`, r.Began.UTC().Format("2006-01-02"), r.Machine, r.Rounds)
	for _, l := range r.Rows {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", l.What, l.Ours, l.Peer, l.Ratio, l.Target, l.met())
	}
	out.WriteString("\n## What is compared, and how\n\n")
	for _, l := range r.Rows {
		fmt.Fprintf(&out, "- **%s.** %s\n", l.What, l.How)
	}
	return out.Bytes()
}

// ns formats nanoseconds in a unit that suits the size.
func ns(v float64) string {
	switch {
	case v < 1e3:
		return fmt.Sprintf("%.0f ns", v)
	case v < 1e6:
		return fmt.Sprintf("%.3g µs", v/1e3)
	case v < 1e9:
		return fmt.Sprintf("%.3g ms", v/1e6)
	}
	return fmt.Sprintf("%.3g s", v/1e9)
}
