package project

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// scripts/release sets these through the linker. In any other build they are empty.
var (
	release string // the version, such as 1.2.0
	commit  string // as in Build
)

// A Build says from what a program was built.
type Build struct {
	Version  string `json:"version"`          // of the release or the module, or "devel"
	Commit   string `json:"commit,omitempty"` // with "+changes" if files differed from it; empty if unknown
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Built returns how this program was built.
func Built() Build {
	b := Build{Version: cmp.Or(release, "devel"), Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok || release != "" {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changes"
		}
	}
	if b.Commit != "" {
		b.Commit += changed
	}
	return b
}

func (b Build) String() string {
	return fmt.Sprintf("%s, commit %s, %s %s", b.Version, cmp.Or(b.Commit, "unknown"), b.Go, b.Platform)
}

// Version names the version, commit and build of this program in one line.
func Version() string { return Built().String() }
