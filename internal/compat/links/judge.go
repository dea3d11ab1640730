package links

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"

	"lockkeeper/internal/project/config"
)

// judge decides which references are valid, after everything they refer to is known. It
// walks the whole repository only if a file is missing.
func (c *checker) judge(ctx context.Context) error {
	missing := func(r reference) bool { return r.problem == Missing }
	if slices.ContainsFunc(c.scans, func(s *scan) bool { return slices.ContainsFunc(s.references, missing) }) {
		if err := c.files.walk(ctx); err != nil {
			return err
		}
		c.names = newNames(c.files)
		if err := c.askGit(ctx); err != nil {
			return err
		}
	}
	return parallel(ctx, runtime.GOMAXPROCS(0), len(c.scans), func(i int) {
		for j := range c.scans[i].references {
			c.judgeOne(c.scans[i], &c.scans[i].references[j])
		}
	})
}

func (c *checker) judgeOne(in *scan, r *reference) {
	switch {
	case r.problem == Missing && r.isName() && len(c.names.called[r.to.path]) > 0:
		r.problem, r.at = "", c.names.called[r.to.path][0]
	case r.problem == Missing && r.loose && !c.mayBePath(r):
		r.dropped = true
	case r.problem == Missing:
		r.reason, r.suggestion = "no such file", c.names.suggest(r.at)
		r.lenient = c.leniency(r)
	case r.problem == Outside && r.to.machine:
		r.reason = "an absolute path of one machine"
	case r.problem == Outside:
		r.reason = "points outside the repository"
	case r.problem == Undefined:
		if !in.labels && isWord(r.text) && isWord(r.Target) {
			r.lenient = "this looks like an index, not like a link"
		}
		r.reason = "this label is not defined, so it is not a link"
	case r.problem == Empty:
		r.reason = "the link is empty"
	case r.anchored != "":
		c.judgeAnchor(r)
	}
}

func (c *checker) judgeAnchor(r *reference) {
	in := c.known[r.anchored]
	if in == nil || in.anchors.has(r.to.fragment) { // an unreadable document is already a finding
		return
	}
	r.problem, r.reason = NoAnchor, r.anchored+" has no such heading"
	list := slices.Sorted(maps.Keys(in.anchors.slugs))
	for id := range in.anchors.ids {
		list = append(list, id)
	}
	lower := strings.ToLower(r.to.fragment)
	if near, ok := config.Nearest(lower, list); ok {
		r.nearest = "#" + near
	}
}

func (c *checker) fillReport() {
	for _, s := range c.scans {
		for i := range s.references {
			r := &s.references[i]
			if r.dropped || r.to.url != "" && c.Web == nil {
				continue
			}
			c.report.References++
			switch {
			case r.problem != "" && (r.lenient != "" || c.lenient.match(r.File)):
				reason := r.reason
				if r.lenient != "" {
					reason += "; " + r.lenient
				}
				c.report.Informational = append(c.report.Informational, Finding{Reference: r.Reference, Problem: r.problem, Reason: reason, Nearest: r.nearest})
			case r.problem != "":
				c.report.Findings = append(c.report.Findings, Finding{Reference: r.Reference, Problem: r.problem, Reason: r.reason, Nearest: r.nearest, Fix: r.fix()})
			case c.KeepValid:
				c.report.Valid = append(c.report.Valid, r.Reference)
			}
		}
	}
}
