package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/text"

	"lockkeeper/internal/compat/links"
)

// The input: a large repository of documents with one broken link in a hundred.
const (
	linkedDocuments = 10_000
	linksOfDocument = 10
	brokenInHundred = 1
	linksToBreak    = linkedDocuments * linksOfDocument * brokenInHundred / 100
)

// writeDocuments makes the documents, and returns them in memory as well.
func writeDocuments(dir string) (texts [][]byte, err error) {
	place := func(i int) string { return fmt.Sprintf("docs/part_%02d/document_%04d.md", i%100, i) }
	for i := range linkedDocuments {
		var b strings.Builder
		fmt.Fprintf(&b, "# Document %d\n\nWhat it is *about*, in a few words, with `some code` in it.\n", i)
		for k := range linksOfDocument {
			to := (i*7 + k*1301) % linkedDocuments
			target := fmt.Sprintf("../../%s#section-%d", place(to), k)
			if (i*linksOfDocument+k)%100 < brokenInHundred {
				target = strings.Replace(target, "document", "documnet", 1)
			}
			fmt.Fprintf(&b, "\n## Section %d\n\nA paragraph of prose that goes on for a while, as prose does, and then refers\nto [document %d](%s) for the rest of it.\n\n- a point, **in bold**\n- and another one\n", k, to, target)
		}
		b.WriteString("\n```go\nfunc main() { fmt.Println(\"[not](a-link.md)\") }\n```\n")
		texts = append(texts, []byte(b.String()))
		file := filepath.Join(dir, place(i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, texts[i], 0o644)); err != nil {
			return nil, err
		}
	}
	return texts, os.WriteFile(filepath.Join(dir, "README.md"), []byte("[first]("+place(0)+")\n"), 0o644)
}

func linksGoldmark(ctx context.Context, b *bench) ([]row, error) {
	dir := filepath.Join(b.dir, "links")
	texts, err := writeDocuments(dir)
	if err != nil {
		return nil, err
	}
	ours := func(n int) error {
		for range n {
			rep, err := links.Check(ctx, dir, links.Options{Documents: []string{"README.md"}, Deep: true, Exclude: []string{"node_modules"}})
			if err != nil {
				return err
			}
			if len(rep.Findings) != linksToBreak || rep.References != linkedDocuments*linksOfDocument+1 {
				return fmt.Errorf("%d references, %d broken", rep.References, len(rep.Findings))
			}
		}
		return nil
	}
	parser := goldmark.New().Parser()
	peer := func(n int) error {
		for range n {
			var next atomic.Int64
			var parsing sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				parsing.Go(func() {
					for i := next.Add(1) - 1; i < int64(len(texts)); i = next.Add(1) - 1 {
						parser.Parse(text.NewReader(texts[i]))
					}
				})
			}
			parsing.Wait()
		}
		return nil
	}
	times, err := b.race(100*time.Millisecond, ours, peer)
	if err != nil {
		return nil, err
	}
	return []row{row{
		What: "Links: 10,000 documents with 100,000 links, to goldmark alone", Ours: ns(median(times[0])), Peer: ns(median(times[1])),
		How: fmt.Sprintf("A deep check from the disk: walk, read, parse, look up files and anchors, draw the graph, and find the nearest path for %d broken links, on %d cores. The peer parses the same texts from memory, with no extension, on as many cores, and does nothing with them.", linksToBreak, runtime.GOMAXPROCS(0)),
	}.atMost(median(ratios(times[0], times[1])), 3, "%.2f×")}, nil
}

// linksRemark sets a whole command beside the same of remark-validate-links, the
// checker of links inside of a repository that most of npm uses.
func linksRemark(ctx context.Context, b *bench) ([]row, error) {
	dir := filepath.Join(b.dir, "remark")
	if _, err := writeDocuments(filepath.Join(dir, "tree")); err != nil {
		return nil, err
	}
	const settings = `{"plugins": [["remark-validate-links", {"repository": false}]]}`
	if err := os.WriteFile(filepath.Join(dir, "tree", ".remarkrc.json"), []byte(settings), 0o644); err != nil {
		return nil, err
	}
	npm := exec.CommandContext(ctx, "npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", filepath.Join(dir, "tree"), "remark-cli@12", "remark-validate-links@13")
	if out, err := npm.CombinedOutput(); err != nil {
		return nil, skipped(fmt.Sprintf("npm did not install it: %v: %.300s", err, out))
	}
	program := filepath.Join(dir, "lockkeeper")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/lockkeeper")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, skipped(fmt.Sprintf("the command does not build: %.300s", out))
	}
	c := &linkCheckers{tree: filepath.Join(dir, "tree")}
	ours, err := c.measure(ctx, `(?m)^broken: .*documnet`, program, "links", "--deep")
	if err != nil {
		return nil, err
	}
	theirs, err := c.measure(ctx, "Cannot find file", filepath.Join(c.tree, "node_modules", ".bin", "remark"), "--frail", "--quiet", "--no-stdout", "docs", "README.md")
	peer, how := ns(float64(theirs)), fmt.Sprintf("both find the same %d broken links", linksToBreak)
	if errors.Is(err, context.DeadlineExceeded) {
		peer, how = "more than "+ns(float64(theirs)), "the peer was stopped when it was not done after that time"
	} else if err != nil {
		return nil, err
	}
	return []row{row{
		What: "Links: the whole command, faster than remark-validate-links", Ours: ns(float64(ours)), Peer: peer,
		How: fmt.Sprintf("`lockkeeper links --deep` and `remark` with remark-validate-links, each once from its start to its exit, on the same %d documents; %s.", linkedDocuments, how),
	}.atLeast(float64(theirs)/float64(ours), 1, "%.0f×")}, nil
}

// linkCheckers run on one tree.
type linkCheckers struct{ tree string }

// measure runs a checker, for five minutes at most, and holds that it finds what is
// broken: as many lines as match.
func (c *linkCheckers) measure(ctx context.Context, match, program string, args ...string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = c.tree, append(os.Environ(), "NODE_OPTIONS=--max-old-space-size=4096")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return took, ctx.Err()
	case !errors.As(err, &exit): // it ends with 1 when something is broken
		return took, fmt.Errorf("%s: %v: %.300s", filepath.Base(program), err, out)
	}
	if broken := len(regexp.MustCompile(match).FindAll(out, -1)); broken != linksToBreak {
		return took, fmt.Errorf("%s finds %d broken, not %d", filepath.Base(program), broken, linksToBreak)
	}
	return took, nil
}
