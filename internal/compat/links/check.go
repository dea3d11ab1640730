package links

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"lockkeeper/internal/machine/disk"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/yuin/goldmark/parser"

	"lockkeeper"
)

// Options configure a check.
type Options struct {
	Documents []string // required documents, from the root; a missing one is a finding
	Optional  []string // documents that are checked if they exist
	Deep      bool     // also check all other documents and how they refer to each other
	Exclude   []string // patterns of documents and directories that Deep skips
	Ignore    []string // patterns of targets that are not checked
	Lenient   []string // patterns of documents whose findings are informational
	Except    []Exception
	Sites     []string // directories that a leading slash of a link can also mean
	KeepValid bool     // also report valid references
	Web       *Web     // nil if URLs are not requested

	// Ignored returns which of the paths git ignores; nil if there is no git.
	Ignored func(context.Context, []string) (map[string]bool, error)
}

type checker struct {
	Options
	files       *files
	parser      parser.Parser
	ignoreWeb   rules
	ignoreLocal rules
	lenient     rules
	except      []exception
	names       *names // nil until a file is missing
	gitIgnores  map[string]bool

	scans  []*scan          // scans of the checked documents, by path
	known  map[string]*scan // scans of all documents, also linked ones; nil if unreadable
	report Report
}

// Check checks the documents of the repository in a directory.
func Check(ctx context.Context, dir string, o Options) (_ *Report, err error) {
	c := &checker{Options: o, parser: newParser(), known: map[string]*scan{}}
	if err := c.prepare(dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.files.root.Close()) }()
	if err := c.scanDocuments(ctx); err != nil {
		return nil, err
	}
	if err := c.scanLinked(ctx); err != nil {
		return nil, err
	}
	if err := c.judge(ctx); err != nil {
		return nil, err
	}
	if o.Web != nil {
		if err := c.askWeb(ctx); err != nil {
			return nil, err
		}
	}
	c.fillReport()
	if o.Deep {
		c.report.Graph = c.graph()
	}
	for _, list := range [][]Finding{c.report.Findings, c.report.Informational} {
		slices.SortStableFunc(list, func(a, b Finding) int { return byPosition(a.Reference, b.Reference) })
	}
	slices.SortStableFunc(c.report.Valid, byPosition)
	return &c.report, nil
}

func (c *checker) prepare(dir string) error {
	exclude, err := newRules("links.exclude", c.Exclude)
	if err != nil {
		return err
	}
	ignore, err := newRules("links.ignore", c.Ignore)
	if err != nil {
		return err
	}
	c.ignoreWeb, c.ignoreLocal = ignore.split()
	if c.lenient, err = newRules("links.informational", c.Lenient); err != nil {
		return err
	}
	if c.except, err = newExceptions(c.Except); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return &lockkeeper.InputError{Field: "directory", Value: dir, Reason: disk.Reason(err), Next: "use an existing, readable directory"}
	}
	c.files = &files{root: root, exclude: exclude}
	c.report.Findings, c.report.Informational = []Finding{}, []Finding{}
	return nil
}

// scanDocuments parses the documents to check and resolves their references.
func (c *checker) scanDocuments(ctx context.Context) error {
	list := slices.Clone(c.Documents)
	for _, name := range c.Optional {
		if c.files.at(name) != nothing {
			list = append(list, name)
		}
	}
	if c.Deep {
		if err := c.files.walk(ctx); err != nil {
			return err
		}
		list = append(list, c.files.documents...)
		for _, u := range c.files.unreadable {
			c.found(Reference{File: u.path, Line: 1, Kind: Document, Target: u.path}, Unreadable, disk.Reason(u.err))
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	scans, err := c.scan(ctx, list, c.lookUp)
	if err != nil {
		return err
	}
	c.scans = scans
	c.report.Documents = len(scans)
	return nil
}

// scanLinked parses documents that are only linked to, for their anchors.
func (c *checker) scanLinked(ctx context.Context) error {
	wanted := map[string]bool{}
	for _, s := range c.scans {
		for i := range s.references {
			r := &s.references[i]
			if _, tried := c.known[r.anchored]; r.problem == "" && r.anchored != "" && !tried {
				wanted[r.anchored] = true
			}
		}
	}
	_, err := c.scan(ctx, slices.Sorted(maps.Keys(wanted)), func(*scan) {})
	return err
}

// scan parses documents in parallel. A document that is unreadable or too complex is a
// finding.
func (c *checker) scan(ctx context.Context, list []string, then func(*scan)) ([]*scan, error) {
	scans, reasons := make([]*scan, len(list)), make([]error, len(list))
	err := parallel(ctx, runtime.GOMAXPROCS(0), len(list), func(i int) {
		source, err := c.files.read(list[i])
		if err == nil {
			if line := tooComplex(source); line > 0 {
				err = &complexityError{line}
			}
		}
		if err != nil {
			reasons[i] = err
			return
		}
		scans[i] = parse(c.parser, list[i], source)
		then(scans[i])
		scans[i].source = nil
	})
	if err != nil {
		return nil, err
	}
	for i, s := range scans {
		if c.known[list[i]] = s; s == nil {
			c.reportUnread(list[i], reasons[i])
		}
	}
	return slices.DeleteFunc(scans, func(s *scan) bool { return s == nil }), nil
}

// A complexityError refuses a document that would take too long to parse.
type complexityError struct{ line int }

func (e *complexityError) Error() string {
	return "too complex to parse up to this line; the document was not checked"
}

func (c *checker) reportUnread(name string, reason error) {
	r := Reference{File: name, Line: 1, Kind: Document, Target: name}
	var tangle *complexityError
	switch {
	case errors.Is(reason, fs.ErrNotExist):
		c.found(r, Missing, "required document is missing")
		return
	case errors.As(reason, &tangle):
		r.Line = tangle.line
	}
	c.found(r, Unreadable, disk.Reason(reason))
}

func (c *checker) found(r Reference, p Problem, reason string) {
	c.report.Findings = append(c.report.Findings, Finding{Reference: r, Problem: p, Reason: reason})
}

// lookUp resolves the references of a document as far as possible without other documents.
func (c *checker) lookUp(s *scan) {
	kept := s.references[:0]
	for _, r := range s.references {
		if r.problem == "" {
			r.to = targetOf(r.Reference)
			c.resolve(&r)
		}
		if r.problem == Missing && r.inText() {
			r.lenient = hedge(s.source, r.start, r.end)
		}
		if !r.to.foreign && !c.ignored(&r) {
			kept = append(kept, r)
		}
	}
	s.references = kept
}

func (c *checker) ignored(r *reference) bool {
	if c.excepted(r) {
		return true
	}
	if r.to.url != "" {
		return c.ignoreWeb.match(r.to.url)
	}
	return len(c.ignoreLocal) > 0 && (c.ignoreLocal.match(r.Target) || c.ignoreLocal.match(r.at))
}

// resolve finds the file of a reference and the document whose anchor it names.
func (c *checker) resolve(r *reference) {
	switch {
	case r.to.url != "" || r.to.foreign:
		return
	case r.to.machine:
		r.problem = Outside
		return
	}
	if kind := c.find(r); kind == nothing {
		if r.problem == "" {
			r.problem = Missing
		}
		return
	} else if isBuiltinAnchor(r.to.fragment) {
		return
	} else if kind == directory {
		r.anchored = path.Join(r.at, "README.md")
		if c.files.at(r.anchored) != regular {
			r.anchored = ""
		}
		return
	}
	if isDocument(r.at) {
		r.anchored = r.at
	}
}

// find finds the file of a reference. A path in text may be relative to the document or to
// the root, a link only to the document.
func (c *checker) find(r *reference) file {
	if r.to.path == "" {
		r.at = r.File
		return regular
	}
	inside := false
	for _, written := range r.candidates() {
		at, ok := joined(r.File, written)
		if !ok {
			continue
		}
		if kind := c.files.at(at); kind != nothing {
			r.at = at
			return kind
		}
		if !inside {
			r.at, inside = at, true
		}
	}
	if at := c.inSite(r); at != "" {
		r.at = at
		return regular
	}
	if !inside {
		r.problem = Outside
	} else if r.positioned(c.files) {
		r.lenient = "the file exists, but a link to a line ends in #L and its number"
	}
	return nothing
}

// inSite returns the file of a link to a page or file of a site, such as /guide/ for
// guide.md or guide/index.md.
func (c *checker) inSite(r *reference) string {
	if r.inText() || !strings.HasPrefix(r.to.path, "/") {
		return ""
	}
	for _, dir := range c.Sites {
		page := path.Join(dir, path.Clean(r.to.path))
		for _, at := range []string{page, page + ".md", page + "/index.md", page + "/_index.md", page + ".html"} {
			if c.files.at(at) == regular {
				return at
			}
		}
	}
	return ""
}

// candidates returns the possible meanings of a reference's path.
func (r *reference) candidates() []string {
	switch {
	case r.inText():
		return []string{r.to.path, "/" + r.to.path}
	case r.to.path != r.to.literal:
		return []string{r.to.path, r.to.literal}
	}
	return []string{r.to.path}
}

// isName reports whether the text names a file without a directory.
func (r *reference) isName() bool {
	return r.inText() && !strings.Contains(r.to.path, "/")
}

// parallel calls the function do n times, each time in a goroutine of its own.
func parallel(ctx context.Context, workers, n int, do func(i int)) error {
	var next atomic.Int64
	var working sync.WaitGroup
	for range min(n, workers) {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	working.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("check of links: %w", context.Cause(ctx))
	}
	return nil
}
