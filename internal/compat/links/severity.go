package links

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"lockkeeper"
)

// An Exception names references that are not checked, and says why.
type Exception struct {
	Name      string   // name for messages
	Documents []string // patterns of the documents; empty for all
	Targets   []string // patterns of the targets; empty for all
	Reason    string
}

type exception struct{ documents, targets rules }

func newExceptions(list []Exception) (rules []exception, err error) {
	for _, e := range list {
		key := "link_exceptions." + e.Name
		if strings.TrimSpace(e.Reason) == "" {
			return nil, &lockkeeper.InputError{Field: key + ".reason", Value: e.Reason, Reason: "is required", Next: "add a line such as reason: created at run time"}
		}
		if len(e.Documents)+len(e.Targets) == 0 {
			return nil, &lockkeeper.InputError{Field: key + ".targets", Reason: "is empty, and so is documents", Next: "name documents, targets or both"}
		}
		var one exception
		if one.documents, err = newRules(key+".documents", e.Documents); err != nil {
			return nil, err
		}
		if one.targets, err = newRules(key+".targets", e.Targets); err != nil {
			return nil, err
		}
		rules = append(rules, one)
	}
	return rules, nil
}

func (c *checker) excepted(r *reference) bool {
	return slices.ContainsFunc(c.except, func(e exception) bool {
		return (len(e.documents) == 0 || e.documents.match(r.File)) &&
			(len(e.targets) == 0 || e.targets.match(strings.TrimPrefix(r.Target, "./")) || e.targets.match(r.at) || r.to.url != "" && e.targets.match(r.to.url))
	})
}

// positioned reports whether a link names an existing file and a line, as in main.go:12.
// Editors open it, browsers do not.
func (r *reference) positioned(f *files) bool {
	name := string(withoutLine([]byte(r.to.path)))
	if r.inText() || name == r.to.path {
		return false
	}
	at, ok := joined(r.File, name)
	return ok && f.at(at) == regular
}

// mayBePath reports whether a directory or a name between backticks is probably a path and
// not something else: it ends in a slash, has no directory, or its first directory exists.
func (c *checker) mayBePath(r *reference) bool {
	first, rest, below := strings.Cut(strings.TrimPrefix(r.to.path, "./"), "/")
	if !below || strings.HasSuffix(rest, "/") || rest == "" || first == ".." {
		return true
	}
	at, ok := joined(r.File, first)
	return ok && c.files.at(at) == directory || c.files.at(first) == directory
}

// leniency returns why a missing path in text is only informational, or "".
func (c *checker) leniency(r *reference) string {
	if !r.inText() || r.lenient != "" {
		return r.lenient
	}
	if found := c.names.endsWith(r.to.path); found != "" {
		return "it may mean " + found
	}
	switch {
	case slices.ContainsFunc(c.meanings(r), func(at string) bool { return c.gitIgnores[at] }):
		return "git ignores it, so it may exist elsewhere"
	case r.loose:
		return "it may not be a path"
	case r.moved == "" && !r.isName() && !c.mayBePath(r):
		return "it may be in another repository"
	}
	return ""
}

// meanings returns the paths from the root that a reference can mean.
func (c *checker) meanings(r *reference) (list []string) {
	for _, written := range r.candidates() {
		if at, ok := joined(r.File, written); ok && at != "" {
			list = append(list, at)
		}
	}
	return list
}

// askGit finds out which of the missing paths in texts git ignores, because each machine creates such files itself.
func (c *checker) askGit(ctx context.Context) (err error) {
	if c.Ignored == nil {
		return nil
	}
	var paths []string
	for _, s := range c.scans {
		for i := range s.references {
			if r := &s.references[i]; r.problem == Missing && r.inText() {
				paths = append(paths, c.meanings(r)...)
			}
		}
	}
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) > 0 {
		c.gitIgnores, err = c.Ignored(ctx, paths)
	}
	if err != nil {
		return fmt.Errorf("which missing files git ignores: %w", err)
	}
	return nil
}

// endsWith returns a path that ends with the parts of another, or "". A file in an archive does not
// count, because it was moved there.
func (n *names) endsWith(part string) string {
	part = strings.TrimPrefix(path.Clean(part), "./")
	for _, name := range n.called[path.Base(part)] {
		if strings.HasSuffix(name, "/"+part) && !isArchived(name) {
			return name
		}
	}
	return ""
}

// Sentences that name a path which need not exist. The word missing often has another
// subject, so it must be next to the path.
var (
	examples = regexp.MustCompile(`(?i)\b(e\. ?g\.|for example|for instance|such as)`)
	absences = regexp.MustCompile(`(?i)\b(not found|no such|non-?existent|not exist(ing)?|doesn['’]t (yet )?exist|don['’]t (yet )?exist|didn['’]t exist|no longer (exists?|there|present)|never existed|` +
		`not (yet )?(present|created|written|implemented|committed)|removed|deleted|renamed|moved (to|from|into)|planned|(to|will|can|should) be (created|added|written|generated))\b`)
	missingBefore = regexp.MustCompile(`(?i)\b(missing|absent)[ \t:*_(]*((the|a|an|files?|documents?|docs?|paths?|targets?|links?|references?|pages?|scripts?|directory|directories|and|or|,)[ \t:,*_(]*)*$`)
	missingAfter  = regexp.MustCompile("(?i)^[`*_)(\"' \t|:,–—-]*((is|are|was|were|but|still|currently|now|both|also|it)[ \t]+)*(missing|absent)[ \t]*([.,;:)|\n\r]|$)")
	codeSpan      = regexp.MustCompile("`[^`]*`")
)

// hedge returns why a path in a sentence need not exist: it is an example, or the sentence
// says that it is missing. Otherwise it returns "".
func hedge(source []byte, start, end int) string {
	before, after := sentence(source, start, end)
	before = bytes.TrimRight(before, "`")
	list := codeSpan.ReplaceAll(before, nil)
	switch {
	case examples.Match(before) || bytes.HasPrefix(bytes.TrimLeft(after, "`*_, "), []byte("for example")):
		return "it is an example"
	case absences.Match(before) || absences.Match(after) || missingBefore.Match(list) || missingAfter.Match(after):
		return "the text says so"
	}
	return ""
}

// maxSentence limits how far a sentence is read in each direction.
const maxSentence = 400

// sentence returns the parts of a sentence before and after a path in it. A sentence does
// not go beyond its paragraph, list item or table row.
func sentence(source []byte, start, end int) (before, after []byte) {
	before, after = source[max(0, start-maxSentence):start], source[end:min(len(source), end+maxSentence)]
	for at := len(before); at > 0; {
		at = bytes.LastIndexByte(before[:at], '\n')
		if at < 0 {
			break
		}
		if beginsBlock(before[at+1:]) || at > 0 && endsBlock(before[:at]) {
			before = before[at+1:]
			break
		}
	}
	if cut := lastStop(before); cut > 0 {
		before = before[cut:]
	}
	for at := 0; ; {
		next := bytes.IndexByte(after[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
		if len(bytes.TrimSpace(after[at:])) == 0 || beginsBlock(after[at:]) {
			after = after[:at]
			break
		}
	}
	if cut := firstStop(after); cut >= 0 {
		after = after[:cut]
	}
	return before, after
}

// blockStart matches the beginning of a line that does not continue a sentence.
var blockStart = regexp.MustCompile(`^[ \t>]*([-*+] |[|#]|[0-9]+[.)] |\r?\n|\r?$)`)

func beginsBlock(line []byte) bool { return blockStart.Match(line) }

// endsBlock reports whether text ends with a line that does not continue: an empty one, a
// table row or a heading.
func endsBlock(text []byte) bool {
	line := bytes.TrimSpace(text[bytes.LastIndexByte(text, '\n')+1:])
	return len(line) == 0 || line[0] == '|' || line[0] == '#'
}

// stop matches the end of a sentence.
var stop = regexp.MustCompile(`[.!?][)"'*_]*\s`)

// abbreviation matches the end of text whose last dot does not end a sentence.
var abbreviation = regexp.MustCompile(`(?i)\b(e\. ?g|i\. ?e|etc|vs|cf|incl|resp|approx)\.$`)

func lastStop(text []byte) (cut int) {
	for _, at := range stop.FindAllIndex(text, -1) {
		if !abbreviation.Match(text[:at[0]+1]) {
			cut = at[1]
		}
	}
	return cut
}

func firstStop(text []byte) int {
	for _, at := range stop.FindAllIndex(text, -1) {
		if !abbreviation.Match(text[:at[0]+1]) {
			return at[0]
		}
	}
	return -1
}

// isWord reports whether text is one identifier.
func isWord(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}
