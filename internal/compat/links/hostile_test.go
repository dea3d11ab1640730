package links

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patterns are texts that take naive parsers quadratic time: unclosed, nested or
// repeatedly scanned.
var patterns = map[string]func(size int) string{
	"one word":       repeat("a"),
	"words":          repeat("word "),
	"dots":           repeat("."),
	"paths":          repeat("a/"),
	"names":          repeat("a.md "),
	"one path":       repeat("a.md/"),
	"brackets":       repeat("["),
	"pairs":          func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"labels":         repeat("[a][b] "),
	"links":          repeat("[a](b) "),
	"half links":     repeat("[a]("),
	"quarter links":  repeat("[a](<"),
	"titles":         repeat("[a](b \""),
	"images":         repeat("!["),
	"tags":           repeat("<a "),
	"attributes":     func(n int) string { return "<a " + strings.Repeat("href='x' ", n/9) },
	"open values":    repeat("<a href=\"x "),
	"comments":       repeat("x<!--"),
	"scripts":        repeat("<script>\n"),
	"quotes":         repeat(">"),
	"lists":          repeat("- "),
	"nested lists":   nested,
	"emphasis":       repeat("*_ "),
	"emphasis again": repeat("a**b"),
	"backticks":      func(n int) string { return growing(n, "`") },
	"table":          func(n int) string { return strings.Repeat("|a", n/2) + "|\n" + strings.Repeat("|-", n/2) + "|\n" },
	"rows":           func(n int) string { return "|a|b|\n|-|-|\n" + strings.Repeat("|x|y|\n", n/6) },
	"definitions":    numbered("[%d]: x\n"),
	"a definition":   repeat("[a]: b\n"),
	"half defined":   repeat("[a]: <b\n"),
	"open titles":    repeat("[a]: b '\n"),
	"footnotes":      numbered("[^%[1]d] x\n\n[^%[1]d]: x\n\n"),
	"headings":       repeat("# a\n"),
	"urls":           repeat("http://a "),
	"half urls":      repeat("://"),
	"front matter":   func(n int) string { return "---\n" + strings.Repeat("a\n", n/2) },
	"noise":          noise,
}

func repeat(s string) func(int) string {
	return func(n int) string { return strings.Repeat(s, n/len(s)) }
}

func numbered(format string) func(int) string {
	return func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
}

func growing(n int, s string) string {
	var b strings.Builder
	for i := 1; b.Len() < n; i++ {
		b.WriteString(strings.Repeat(s, i) + " ")
	}
	return b.String()
}

func nested(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return b.String()
}

func noise(n int) string {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

// Any document is checked or refused in time proportional to its size, even 10 MB in one
// line. A refusal is a finding at the line where the document became too complex.
func TestHugeDocuments(t *testing.T) {
	const limit = 2 * time.Minute // of processor time, under the race detector
	dir := t.TempDir()
	large := []string{"one word", "words", "one path", "links", "brackets", "quotes"}
	plain := []string{"one word", "words", "paths", "names", "one path", "headings", "urls", "rows"}
	for name, text := range patterns {
		t.Run(name, func(t *testing.T) {
			size := 128 << 10
			if slices.Contains(large, name) {
				size = 10 << 20
			}
			file := strings.ReplaceAll(name, " ", "-") + ".md"
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text(size)), 0o644); err != nil {
				t.Fatal(err)
			}
			began := processorTime(t)
			rep, err := Check(t.Context(), dir, Options{Documents: []string{file}})
			took := processorTime(t) - began
			if err != nil {
				t.Fatal(err)
			}
			refused := slices.ContainsFunc(rep.Findings, func(f Finding) bool { return f.Problem == Unreadable && f.Line > 0 })
			if took > limit || refused && slices.Contains(plain, name) || rep.Documents == 0 != refused {
				t.Errorf("took %s, %d documents, refused %v", took, rep.Documents, refused)
			}
			t.Logf("%s, refused %v, %d findings", took.Round(time.Millisecond), refused, len(rep.Findings))
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// processorTime returns the time that this process has spent on a processor. Other processes of a busy
// machine do not add to it.
func processorTime(t *testing.T) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A document above the size limit is not read.
func TestTooLarge(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "README.md"), maxSize+1); err != nil {
		t.Fatal(err)
	}
	rep, err := Check(t.Context(), dir, Options{Documents: []string{"README.md"}})
	if err != nil || len(rep.Findings) != 1 || rep.Findings[0].Problem != Unreadable || rep.Findings[0].Reason != "larger than 32 MiB" {
		t.Errorf("%+v, %v", rep, err)
	}
}

// Cyclic, dangling and outside symbolic links, pipes, and directories named like documents
// neither block a check nor let it leave the root.
func TestOddFiles(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "secret.md", "# Secret\n[x](nowhere.md)\n")
	write(dir, "README.md", strings.Join([]string{
		"[loop](loop/a.md)", "[self](self.md)", "[out](out.md#secret)", "[outdir](outside/secret.md)", "[dangling](dangling.md)", "[pipe](pipe.md#x)",
		"[dir](dir.md)", "[in](in.md#real)", "[indir](docs-link/real.md#real)", "[inloop](docs/back/docs/back/docs/real.md)", "[bytes](b%FFd.md)",
	}, "\n"))
	write(dir, "docs/real.md", "# Real\n")
	write(dir, "dir.md/x.md", "[y](nowhere.md)\n")
	write(dir, "b\xffd.md", "\xff\xfe [x](\xff.md) `a/\xff.md` \xff.md\n# \xff\n[y](#\xff)")
	for name, to := range map[string]string{
		"loop": "loop", "self.md": "self.md", "out.md": filepath.Join(outside, "secret.md"), "outside": outside, "dangling.md": "nothing.md",
		"in.md": "docs/real.md", "docs-link": "docs", "docs/back": "..",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, deep := range []bool{false, true} {
		rep, err := Check(t.Context(), dir, Options{Documents: []string{"README.md", "pipe.md", "self.md"}, Deep: deep})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range rep.Findings {
			if f.File == "README.md" {
				got = append(got, string(f.Problem)+" "+f.Target)
				if path, _, _ := strings.Cut(f.Target, "#"); f.Fix != nil || f.Nearest == path {
					t.Errorf("suggestion for %s is %s, fix %+v", f.Target, f.Nearest, f.Fix)
				}
			}
			if f.File == "pipe.md" && (f.Problem != Unreadable || f.Reason != "not a regular file") || f.File == "self.md" && f.Problem != Unreadable {
				t.Errorf("%+v", f)
			}
		}
		want := []string{"missing loop/a.md", "missing self.md", "missing out.md#secret", "missing outside/secret.md", "missing dangling.md"}
		if !slices.Equal(got, want) {
			t.Errorf("deep %v: %q, want %q", deep, got, want)
		}
		if deep && rep.Documents != 4 { // README.md, docs/real.md, dir.md/x.md, and the one with odd bytes
			t.Errorf("%d documents", rep.Documents)
		}
	}
}

// An unreadable document is a finding. Root can read everything, so as root the test runs
// again as another user.
func TestUnreadable(t *testing.T) {
	const where = "LOCKKEEPER_TEST_LINKS"
	dir := os.Getenv(where)
	if dir == "" {
		dir = unreadable(t)
	}
	if os.Geteuid() == 0 {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestUnreadable$", "-test.v")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), where+"="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestUnreadable") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	rep, err := Check(t.Context(), dir, Options{Documents: []string{"README.md"}, Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range rep.Findings {
		got = append(got, fmt.Sprintf("%s:%d %s %s: %s", f.File, f.Line, f.Problem, f.Target, f.Reason))
	}
	want := []string{"closed.md:1 unreadable closed.md: permission denied", "shut:1 unreadable shut: permission denied"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// unreadable creates a repository that other users can read only in part.
func unreadable(t *testing.T) string {
	dir, err := os.MkdirTemp("", "links")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.Chmod(filepath.Join(dir, "shut"), 0o700)
		os.RemoveAll(dir)
	})
	for name, text := range map[string]string{"README.md": "[closed](closed.md#x)\n", "closed.md": "[x](y.md)\n", "shut/x.md": "# x\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{".": 0o755, "closed.md": 0, "shut": 0} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
