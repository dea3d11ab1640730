package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// completionLimit is how long a shell waits for suggestions. completionItems is how many
// items of each status it gets.
const (
	completionLimit = time.Second
	completionItems = 50
)

// A source lists suggestions from the open project.
type source func(context.Context, *project.Project) ([]cobra.Completion, error)

// sources maps words in usage lines to their suggestions.
var sources = map[string]source{
	"GRANT":  grantIDs,
	"HOLDER": holders,
	"ITEM":   itemIDs,
	"ID":     rescueIDs,
	"REF":    references,
	"TOPIC":  references,
	"UNIT":   units,
}

// files are the words in usage lines that mean files, which the shell completes.
var files = []string{"PATH", "FILE", "DIR", "DIRECTORY", "DOCUMENT", "PLAN.yaml", "COMMAND"}

// complete gives every command below cmd its suggestions, by the words in its usage line
// and the names of its flags.
func complete(p *command.Program, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		complete(p, sub)
	}
	fixed := map[string][]string{
		"policy": slices.Sorted(maps.Keys(lockkeeper.Policies())),
		"status": {"queued", "running", "completed", "failed"},
		"flow":   flow.Names(),
	}
	for _, kind := range view.EventKinds() {
		fixed["kind"] = append(fixed["kind"], string(kind))
	}
	suggest := func(flag string, f cobra.CompletionFunc) {
		if cmd.Flags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil {
			cmd.RegisterFlagCompletionFunc(flag, f) // fails only for a missing flag
		}
	}
	suggest("grant", from(p, grantIDs))
	for flag, values := range fixed {
		suggest(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	if cmd.ValidArgsFunction != nil || cmd.HasSubCommands() {
		return
	}
	words := placeholders(cmd.Use)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(words) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list []cobra.Completion
		directive := cobra.ShellCompDirectiveNoFileComp
		for _, word := range words[min(len(args), len(words)-1)] {
			if slices.Contains(files, word) {
				directive = cobra.ShellCompDirectiveDefault
			}
			if s := sources[word]; s != nil {
				found, _ := from(p, s)(cmd, args, typed)
				list = append(list, found...)
			}
		}
		return list, directive
	}
}

// placeholders returns the words of a usage line by position. Alternatives, separated by |,
// share a position.
func placeholders(use string) (positions [][]string) {
	words := strings.Fields(strings.NewReplacer("[/BATCH]", "", "/BATCH", "", "/ITEM", "", "|", " | ", "[", "", "]", "", "…", "").Replace(use))[1:]
	for i, word := range words {
		option := strings.HasPrefix(word, "-") || i > 0 && strings.HasPrefix(words[i-1], "--") && words[i-1] != "--"
		switch {
		case word == "|" || option || strings.HasPrefix(word, "<"):
		case i > 0 && words[i-1] == "|" && len(positions) > 0:
			last := len(positions) - 1
			positions[last] = append(positions[last], word)
		default:
			positions = append(positions, []string{word})
		}
	}
	return positions
}

// from returns suggestions from the project. Shells show no errors here, so on an error
// there are no suggestions.
func from(p *command.Program, s source) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		settings := p.Settings()
		settings.SkipRecovery = true
		a, err := project.Open(ctx, settings)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer a.Close() // nothing was changed
		list, err := s(ctx, a)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list = slices.DeleteFunc(list, func(c cobra.Completion) bool { return !strings.HasPrefix(c, typed) })
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// described returns a suggestion with a one-line description.
func described(name, about string) cobra.Completion {
	about, _, _ = strings.Cut(about, "\n")
	return cobra.CompletionWithDesc(term.Clean(name), term.Clean(about))
}

func grantIDs(ctx context.Context, a *project.Project) (list []cobra.Completion, err error) {
	entries, err := a.Locks.Requests(ctx)
	for _, e := range entries {
		paths := slices.Concat(e.WritePaths, e.UpgradeablePaths, e.ReadPaths)
		list = append(list, described(e.ID, e.Holder+": "+strings.Join(paths[:min(len(paths), 3)], ", ")))
	}
	return list, err
}

func holders(ctx context.Context, a *project.Project) (list []cobra.Completion, err error) {
	entries, err := a.Locks.Requests(ctx)
	for _, e := range entries {
		list = append(list, term.Clean(e.Holder))
	}
	slices.Sort(list)
	return slices.Compact(list), err
}

func itemIDs(ctx context.Context, a *project.Project) (list []cobra.Completion, err error) {
	items, _, err := view.New(a).FirstItems(ctx, completionItems, lockkeeper.ItemError, lockkeeper.ItemDispatched, lockkeeper.ItemQueued, lockkeeper.ItemCompleted)
	for _, it := range items {
		list = append(list, described(it.ID, jobs.Title(it.Item)+" "+it.Phase+", "+jobs.StateOf(it.Item)))
	}
	return list, err
}

func rescueIDs(ctx context.Context, a *project.Project) (list []cobra.Completion, err error) {
	entries, err := session.Rescued(ctx, a)
	for _, e := range entries {
		list = append(list, described(e.ID, view.RescueKind(e)+" of "+e.Path))
	}
	return list, err
}

func references(ctx context.Context, a *project.Project) (list []cobra.Completion, err error) {
	decider, err := acts.Open(ctx, a, "", lockkeeper.Actor{})
	if err != nil {
		return nil, err
	}
	open, err := decider.Waiting(ctx)
	for _, g := range open {
		kind, name, _ := strings.Cut(g.Ref.String(), " ")
		list = append(list, described(name, kind))
	}
	return list, err
}

func units(ctx context.Context, a *project.Project) (list []cobra.Completion, err error) {
	decider, err := acts.Open(ctx, a, "", lockkeeper.Actor{})
	if err != nil {
		return nil, err
	}
	for _, unit := range decider.Units {
		list = append(list, term.Clean(unit))
	}
	return list, nil
}
