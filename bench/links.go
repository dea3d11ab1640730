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

// The input is a large repository of documents, in which one link in a hundred is broken.
const (
	linkedDocuments = 10_000
	linksOfDocument = 10
	brokenInHundred = 1
	linksToBreak    = linkedDocuments * linksOfDocument * brokenInHundred / 100
)

// writeDocuments writes the documents, and returns their contents.
func writeDocuments(dir string) (texts [][]byte) {
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
		writeFile(filepath.Join(dir, place(i)), texts[i])
	}
	writeFile(filepath.Join(dir, "README.md"), []byte("[first]("+place(0)+")\n"))
	return texts
}

func linksGoldmark(b *bench) []row {
	dir := filepath.Join(b.dir, "links")
	texts := writeDocuments(dir)
	ours := times(func() {
		rep := get(links.Check(b.ctx, dir, links.Options{Documents: []string{"README.md"}, Deep: true, Exclude: []string{"node_modules"}}))
		if len(rep.Findings) != linksToBreak || rep.References != linkedDocuments*linksOfDocument+1 {
			check(fmt.Errorf("%d references, %d broken", rep.References, len(rep.Findings)))
		}
	})
	parser := goldmark.New().Parser()
	peer := times(func() {
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
	})
	times := b.race(100*time.Millisecond, ours, peer)
	return []row{row{
		What: "Links: 10,000 documents with 100,000 links, to goldmark alone", Ours: ns(median(times[0])), Peer: ns(median(times[1])),
		How: fmt.Sprintf("Ours is a deep check from the disk: it walks, reads, parses, looks up files and anchors, and draws the graph. It finds the nearest path for %d broken links, on %d cores. The peer only parses the same texts from memory, with no extension, on as many cores.", linksToBreak, runtime.GOMAXPROCS(0)),
	}.atMost(median(ratios(times[0], times[1])), 3, "%.2f×")}
}

// linksRemark compares the whole command with remark-validate-links, the most common npm
// package that checks links inside a repository.
func linksRemark(b *bench) []row {
	dir := filepath.Join(b.dir, "remark")
	tree := filepath.Join(dir, "tree")
	writeDocuments(tree)
	writeFile(filepath.Join(tree, ".remarkrc.json"), []byte(`{"plugins": [["remark-validate-links", {"repository": false}]]}`))
	npm := exec.CommandContext(b.ctx, "npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", tree, "remark-cli@12", "remark-validate-links@13")
	if out, err := npm.CombinedOutput(); err != nil {
		check(skipped(fmt.Sprintf("npm did not install it: %v: %.300s", err, out)))
	}
	ours := get(checkLinks(b.ctx, tree, `(?m)^broken: .*documnet`, b.build("lockkeeper", dir), "links", "--deep"))
	theirs, err := checkLinks(b.ctx, tree, "Cannot find file", filepath.Join(tree, "node_modules", ".bin", "remark"), "--frail", "--quiet", "--no-stdout", "docs", "README.md")
	peer, how := ns(float64(theirs)), fmt.Sprintf("Both find the same %d broken links", linksToBreak)
	if errors.Is(err, context.DeadlineExceeded) {
		peer, how = "more than "+ns(float64(theirs)), "The peer was stopped when it was not done after that time"
	} else {
		check(err)
	}
	return []row{row{
		What: "Links: the whole command, faster than remark-validate-links", Ours: ns(float64(ours)), Peer: peer,
		How: fmt.Sprintf("`lockkeeper links --deep` and `remark` with remark-validate-links check the same %d documents. Each is measured once, from its start to its exit. %s.", linkedDocuments, how),
	}.atLeast(float64(theirs)/float64(ours), 1, "%.0f×")}
}

// checkLinks runs a checker for five minutes at most. It fails unless as many lines of the
// output match as there are broken links.
func checkLinks(ctx context.Context, tree, match, program string, args ...string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "NODE_OPTIONS=--max-old-space-size=4096")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if ctx.Err() != nil {
		return took, ctx.Err()
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok { // the checker exits with code 1 if a link is broken
		return took, fmt.Errorf("%s: %v: %.300s", filepath.Base(program), err, out)
	}
	if broken := len(regexp.MustCompile(match).FindAll(out, -1)); broken != linksToBreak {
		return took, fmt.Errorf("%s finds %d broken, not %d", filepath.Base(program), broken, linksToBreak)
	}
	return took, nil
}
