package inspect

import (
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// eventKinds is every kind of event there is.
func eventKinds() (names []string) {
	for _, k := range view.EventKinds() {
		names = append(names, string(k))
	}
	return names
}

// parseKind reads the kind of events to show, also as audit itself spells it; empty
// for all of them.
func parseKind(text string) (string, error) {
	kind, known := strings.NewReplacer(" ", "_", "-", "_").Replace(text), eventKinds()
	if text == "" || slices.Contains(known, kind) {
		return kind, nil
	}
	next := "one of " + strings.Join(known, ", ")
	if near, ok := config.Nearest(kind, known); ok {
		next = "did you mean " + near + "? It is " + next
	}
	return "", &lockkeeper.InputError{Field: "kind", Value: text, Reason: "no kind of event", Next: next}
}

// whoOf is whom an event is about: an item by its id and what it is called, or a holder,
// or else who did it.
func whoOf(ev lockkeeper.Event) string {
	item := view.ItemOf(ev)
	switch name := ev.Data["workflow"]; {
	case ev.Kind == lockkeeper.EventQueued:
		return fmt.Sprintf("%s (%s)", item, term.Clean(ev.Holder))
	case item != "" && name != "":
		return fmt.Sprintf("%s (%s)", item, term.Clean(name))
	case item != "" && (ev.Holder == "" || ev.Holder == item):
		return "item " + item
	case item != "":
		return fmt.Sprintf("%s (item %s)", term.Clean(ev.Holder), item)
	case ev.Holder == "":
		return term.Clean(ev.Actor.Name)
	}
	return term.Clean(ev.Holder)
}
