package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/compat/links"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/command"
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
		Long: `Check that what documents refer to is there: files, images and headings that are
linked to, paths in backticks, and files that are mentioned. It looks at
README.md, docs/INDEX.md and, where there is one, docs/BUILD_HISTORY.md, or at
what links.documents in lockkeeper.yaml names, or at the documents that are
named here; with --deep at every Markdown file. A document that is missing is a
finding. Code blocks are passed over. No lockkeeper init is needed.

With --check-urls it asks the web as well. It connects to public addresses alone,
whatever a name or a redirect leads to: --allow-private lifts that.

With --fix it proposes to rewrite links to files that have moved, asks, and does
so through the gate, under locks on the documents: that needs lockkeeper init, and
gate.allowed_write_paths that cover them.

It ends with 0 when everything is there, and with 1 when something is not.`,
		Example: `  lockkeeper links
  lockkeeper links --deep --check-urls
  lockkeeper links docs/design.md --verbose
  lockkeeper links --deep --fix
  lockkeeper links --graph dot | dot -Tsvg >links.svg`,
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
	f.BoolVar(&o.verbose, "verbose", false, "list what is valid, too")
	f.BoolVar(&o.checkURLs, "check-urls", false, "ask the web whether URLs lead somewhere")
	f.BoolVar(&o.allowPrivate, "allow-private", false, "with --check-urls, ask private addresses, too")
	f.StringVar(&o.graph, "graph", "", "print how all documents refer to each other, orphans and circles marked: `dot` or json")
	f.BoolVar(&o.fix, "fix", false, "propose to rewrite links to files that have moved, and ask")
	f.BoolVar(&o.yes, "yes", false, "with --fix, do not ask")
	o.OwnLock.Flags(f)
	return cmd
}

// check refuses options that do not go together.
func (o *linksOptions) check(p *program, cmd *cobra.Command, args []string) error {
	switch {
	case o.graph != "" && o.graph != "dot" && o.graph != "json":
		return command.Usage(cmd, fmt.Sprintf("--graph %q: must be dot or json", o.graph))
	case o.graph == "dot" && p.JSON:
		return command.Usage(cmd, "--graph dot is no JSON: leave one of them out, or use --graph json")
	case o.graph != "" && (o.fix || len(args) > 0):
		return command.Usage(cmd, "--graph is about all documents, and changes none: leave the rest out")
	case o.deep && len(args) > 0:
		return command.Usage(cmd, "--deep checks all documents: leave it out, or the documents")
	case o.allowPrivate && !o.checkURLs:
		return command.Usage(cmd, "--allow-private goes with --check-urls")
	case !o.fix && (o.yes || o.Grant != "" || o.Wait != 0):
		return command.Usage(cmd, "--yes, --grant and --wait go with --fix")
	}
	return nil
}

// repository is the root of what is checked: of the codebase, initialised or not, or
// of the repository of git, or the directory alone.
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
			opt.Ignore = nil // by default it is this machine that is not asked
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

// documents are those that were typed, as seen from the root.
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
			return nil, &lockkeeper.InputError{Field: "document", Value: name, Reason: "a directory", Next: "name its documents, or check all of them: lockkeeper links --deep"}
		}
		list = append(list, filepath.ToSlash(seen))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
