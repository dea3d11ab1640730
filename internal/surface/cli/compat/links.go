package compat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/compat/links"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

type linksOptions struct {
	command.OwnLock
	deep, verbose           bool
	checkURLs, allowPrivate bool
	fix, yes                bool
	graph                   string
}

func (p *program) linksCommand() *cobra.Command {
	var o linksOptions
	cmd := &cobra.Command{
		Use:   "links [DOCUMENT]…",
		Short: "Check the links in documents",
		Long: `Check that everything that documents refer to exists: linked files, images and
headings, paths in backticks, and mentioned files. It checks the named documents. Without
any it checks links.documents of lockkeeper.yaml, by default README.md, docs/INDEX.md
and, if it exists, docs/BUILD_HISTORY.md. With --deep it checks every Markdown file. A
missing document of this list is a finding. Code blocks are skipped. It needs no lockkeeper init.

Findings that may be no mistake are informational: they are counted, --verbose lists them,
and the check does not fail. See docs/links.md.

With --check-urls it also requests URLs. It connects only to public addresses, also after
redirects; --allow-private permits others.

With --fix, or --fix-mode, it proposes to rewrite links to moved files, asks, and lands the changes
through the gate, under locks on the documents. That needs lockkeeper init, and
gate.allowed_write_paths that cover the documents.

The exit code is 1 if something is missing.`,
		Example: `  lockkeeper links
  lockkeeper links --deep README.md
  lockkeeper links --deep --check-urls
  lockkeeper links docs/design.md --verbose
  lockkeeper links --deep --fix
  lockkeeper links --graph dot | dot -Tsvg >links.svg`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(p, cmd, args); err != nil {
				return err
			}
			if o.fix {
				return p.With(cmd.Context(), func(a *project.Project) error { return p.fixLinks(cmd, a, o, args) })
			}
			dir := p.repository()
			conf, err := config.Load(filepath.Join(dir, config.FileName), p.Lookup, nil)
			if err != nil {
				return err
			}
			rep, err := p.checkLinks(cmd.Context(), dir, conf, o, args)
			if err != nil {
				return err
			}
			return p.showLinks(rep, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.deep, "deep", false, "check every Markdown file")
	f.BoolVar(&o.verbose, "verbose", false, "also list valid references and informational findings")
	f.BoolVar(&o.checkURLs, "check-urls", false, "check that URLs can be reached")
	f.BoolVar(&o.allowPrivate, "allow-private", false, "with --check-urls, also connect to private addresses")
	f.StringVar(&o.graph, "graph", "", "print how documents refer to each other, with orphans and cycles: `dot` or json")
	f.BoolVar(&o.fix, "fix", false, "propose to rewrite links to moved files, and ask")
	f.BoolVar(&o.fix, "fix-mode", false, "the same as --fix")
	f.BoolVar(&o.yes, "yes", false, "with --fix, do not ask")
	o.OwnLock.Flags(f)
	return cmd
}

func (o *linksOptions) check(p *program, cmd *cobra.Command, args []string) error {
	switch {
	case o.graph != "" && o.graph != "dot" && o.graph != "json":
		return command.Usage(cmd, fmt.Sprintf("--graph %q: must be dot or json", o.graph))
	case o.graph == "dot" && p.JSON:
		return command.Usage(cmd, "--graph dot is not JSON: omit one of them, or use --graph json")
	case o.graph != "" && (o.fix || len(args) > 0):
		return command.Usage(cmd, "--graph covers all documents and changes none: omit --fix and the documents")
	case o.allowPrivate && !o.checkURLs:
		return command.Usage(cmd, "--allow-private needs --check-urls")
	case !o.fix && (o.yes || o.Grant != "" || o.Wait != 0):
		return command.Usage(cmd, "--yes, --grant and --wait need --fix")
	}
	return nil
}

// repository returns the root of the documents: the root of the codebase, with or without
// init, or of the git repository, or the directory itself.
func (p *program) repository() string {
	for _, mark := range []string{filepath.Join(".lockkeeper", "space.json"), config.FileName, ".git"} {
		for dir := p.Base(); ; dir = filepath.Dir(dir) {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return p.Base()
}

func (p *program) checkLinks(ctx context.Context, dir string, conf *config.Config, o linksOptions, named []string) (*links.Report, error) {
	opt := links.Options{
		Documents: conf.Links.Documents, Optional: conf.Links.Optional, Exclude: conf.Links.Exclude, Ignore: conf.Links.Ignore,
		Lenient: conf.Links.Lenient, Sites: conf.Links.Sites, Except: exceptionsOf(conf), Ignored: p.ignoredByGit(dir),
		Deep: o.deep || o.graph != "", KeepValid: o.verbose,
	}
	if len(named) > 0 {
		documents, err := p.documents(dir, named)
		if err != nil {
			return nil, err
		}
		opt.Documents, opt.Optional = documents, nil
	}
	if o.checkURLs {
		if o.allowPrivate && conf.Source("links.ignore") == config.FromDefault {
			opt.Ignore = nil // the default would ignore the addresses of this machine
		}
		opt.Web = &links.Web{Parallel: conf.Links.URLsAtOnce, PerHost: conf.Links.URLsPerHost, Timeout: conf.Links.URLTimeout, AllowPrivate: o.allowPrivate}
	}
	ctx, stop := command.Interruptible(ctx)
	defer stop()
	rep, err := links.Check(ctx, dir, opt)
	if err != nil {
		return nil, command.Interrupted(ctx, err)
	}
	return rep, nil
}

func exceptionsOf(conf *config.Config) (list []links.Exception) {
	for _, name := range conf.LinkExceptions.Names() {
		row := conf.LinkExceptions.Row(name)
		list = append(list, links.Exception{Name: name, Documents: row.Documents, Targets: row.Targets, Reason: row.Reason})
	}
	return list
}

// ignoredByGit asks git which paths it ignores. Outside of a repository it ignores none.
func (p *program) ignoredByGit(dir string) func(context.Context, []string) (map[string]bool, error) {
	return func(ctx context.Context, paths []string) (map[string]bool, error) {
		repo, err := git.Open(ctx, dir, p.Env)
		if _, none := errors.AsType[*git.NoneError](err); none {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return repo.Ignored(ctx, paths)
	}
}

// documents returns the typed documents, relative to the root.
func (p *program) documents(root string, typed []string) (list []string, err error) {
	base, err := filepath.EvalSymlinks(p.Base())
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	for _, name := range typed {
		at := name
		if !filepath.IsAbs(at) {
			at = filepath.Join(base, at)
		}
		seen, err := filepath.Rel(root, at)
		if err != nil || !filepath.IsLocal(seen) {
			return nil, &lockkeeper.InputError{Field: "document", Value: name, Reason: "outside of " + root, Next: "name a document of this repository"}
		}
		if info, err := os.Stat(at); err == nil && info.IsDir() {
			return nil, &lockkeeper.InputError{Field: "document", Value: name, Reason: "a directory", Next: "name its documents, or check all: lockkeeper links --deep"}
		}
		list = append(list, filepath.ToSlash(seen))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

type linksAnswer struct {
	*links.Report
	Orphans []string      `json:"orphans,omitempty"`
	Cycles  []links.Cycle `json:"cycles,omitempty"`
	Fixes   []links.Fix   `json:"fixes,omitempty"`   // proposed, or landed
	Landing uint64        `json:"landing,omitempty"` // landing of the fixes
}

func answerOf(rep *links.Report) *linksAnswer {
	a := &linksAnswer{Report: rep}
	if rep.Graph != nil {
		a.Orphans, a.Cycles = rep.Graph.Orphans, rep.Graph.Cycles
	}
	return a
}

// showLinks prints the findings, and fails if there are any.
func (p *program) showLinks(rep *links.Report, o linksOptions) error {
	var err error
	switch {
	case o.graph == "dot":
		_, err = fmt.Fprint(p.Out, rep.Graph.Dot())
	case o.graph == "json":
		err = p.PrintJSON(rep.Graph)
	case p.JSON:
		err = p.PrintJSON(answerOf(rep))
	default:
		p.listLinks(rep, o)
		fmt.Fprintln(p.Out, linksSummary(rep))
		if n := len(rep.Fixes()); n > 0 {
			p.Advise(fmt.Sprintf("lockkeeper links --fix, with the same options, rewrites %s", term.Plural(n, "1 link to a moved file", fmt.Sprint(n, " links to moved files"))))
		}
	}
	if o.graph != "" {
		fmt.Fprintln(p.Err, linksSummary(rep))
	}
	if err != nil {
		return err
	}
	return linksEnding(len(rep.Findings))
}

// linksEnding returns the error with which a check with this many broken references ends.
func linksEnding(broken int) error {
	if broken > 0 {
		return &command.ExitError{Code: command.ExitFailed}
	}
	return nil
}

// listLinks prints broken references, one per line, and with --verbose also valid ones.
func (p *program) listLinks(rep *links.Report, o linksOptions) {
	paint := p.Painter(p.Out)
	if o.verbose {
		for _, r := range rep.Valid {
			fmt.Fprintf(p.Out, "%s %s\n", paint(term.Green, "ok:"), describeReference(r))
		}
	}
	for _, f := range rep.Findings {
		fmt.Fprintf(p.Out, "%s %s\n", paint(term.Red, "broken:"), describeFinding(f))
	}
	if o.verbose {
		for _, f := range rep.Informational {
			fmt.Fprintf(p.Out, "%s %s\n", paint(term.Yellow, "info:"), describeFinding(f))
		}
	}
	if g := rep.Graph; g != nil && o.verbose {
		for _, name := range g.Orphans {
			fmt.Fprintf(p.Out, "orphan: %s: no other document refers to it\n", term.Clean(name))
		}
		for _, c := range g.Cycles {
			fmt.Fprintf(p.Out, "cycle: %s\n", term.Clean(strings.Join(c.Path, " → ")))
		}
	}
}

func describeFinding(f links.Finding) string {
	line := describeReference(f.Reference)
	if f.Kind == links.Document {
		line = position(f.Reference)
	}
	line += ": " + term.Clean(f.Reason)
	switch {
	case f.Fix != nil:
		line += "; moved to " + term.Clean(f.Fix.To)
	case f.Nearest != "" && !strings.Contains(f.Reason, f.Nearest):
		line += "; nearest: " + term.Clean(f.Nearest)
	}
	return line
}

func position(r links.Reference) string { return fmt.Sprintf("%s:%d", term.Clean(r.File), r.Line) }

func describeReference(r links.Reference) string {
	return fmt.Sprintf("%s: %s %s", position(r), r.Kind, term.Clean(r.Target))
}

func linksSummary(rep *links.Report) string {
	text := fmt.Sprintf("%s, %s", term.Counted(rep.Documents, "document"), term.Counted(rep.References, "reference"))
	if rep.Asked > 0 {
		text += fmt.Sprintf(", %s checked", term.Counted(rep.Asked, "URL"))
	}
	if g := rep.Graph; g != nil {
		text += fmt.Sprintf(", %s, %s", term.Counted(len(g.Orphans), "orphan"), term.Counted(len(g.Cycles), "cycle"))
	}
	broken, info := len(rep.Findings), len(rep.Informational)
	if broken+info == 0 {
		return text + ": all valid"
	}
	verdict := "none broken"
	if broken > 0 {
		verdict = fmt.Sprintf("%d broken", broken)
	}
	if info > 0 {
		verdict += fmt.Sprintf(", %d informational", info)
	}
	return text + ": " + verdict
}
