package enrol

import (
	"reflect"
	"strings"

	"github.com/tailscale/hujson"

	"lockkeeper"
)

// A part is a piece of our text in a file of a host.
type part interface {
	// into returns the text with the part added.
	into(text string, o order) (string, error)
	// outOf returns the text without the part, in any of its versions.
	outOf(text string, o order) (string, error)
}

// An order names the host and the program for which a part is made.
type order struct {
	host    Host
	program Program
}

// hookGroup is the JSON form of a hook in all hosts.
type hookGroup struct {
	Matcher string      `json:"matcher,omitempty"`
	Hooks   []hookEntry `json:"hooks"`
}

type hookEntry struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

func (o order) group(ev event) hookGroup {
	return hookGroup{ev.matcher, []hookEntry{{"command", o.host.command(o.program.Shell, ev), o.host.limit}}}
}

// hooks is the part with our hooks, in a JSON file.
type hooks struct{}

func (p hooks) into(text string, o order) (string, error) {
	if right, err := p.isRight(text, o); err != nil || right {
		return text, err
	}
	bare, err := p.outOf(text, o)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(bare) == "" {
		bare = "{}\n"
	}
	out := bare
	for _, ev := range o.host.turns {
		root, err := parseObject(out, "hooks")
		if err != nil {
			return "", err
		}
		at := root.find("hooks")
		list := at.find(ev.name)
		switch {
		case at == nil:
			out, err = put(out, root, root, "hooks", map[string]any{ev.name: []hookGroup{o.group(ev)}})
		case list == nil:
			out, err = put(out, root, at, ev.name, []hookGroup{o.group(ev)})
		case list.kind() != '[':
			return "", &syntaxError{list.StartOffset, "hooks." + ev.name + " is not a list"}
		default:
			out, err = put(out, root, list, "", o.group(ev))
		}
		if err != nil {
			return "", err
		}
	}
	return out, sameElse(text, out, p, o)
}

// parseObject parses a file that must be one object. If it has the member key, that must be an
// object, too. Hosts treat an empty file as an empty object.
func parseObject(text, key string) (*node, error) {
	if strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")) == "" {
		return &node{Value: &hujson.Object{}}, nil
	}
	root, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	if root.kind() != '{' {
		return nil, &syntaxError{root.StartOffset, "the file is not a JSON object"}
	}
	if at := root.find(key); at != nil && at.kind() != '{' {
		return nil, &syntaxError{at.StartOffset, key + " is not an object"}
	}
	return root, nil
}

// isRight reports whether the text has each of our hooks exactly once, as enrolling writes it.
func (p hooks) isRight(text string, o order) (bool, error) {
	found, err := hooksIn(text, o.host)
	if err != nil || len(found) != len(o.host.turns) {
		return false, err
	}
	for i, ev := range o.host.turns {
		text, err := encode(o.group(ev), "", "")
		if err != nil {
			return false, err
		}
		want, err := parseJSON(text)
		if err != nil {
			return false, err
		}
		if found[i].Event != ev.name || !reflect.DeepEqual(found[i].group.plain(), want.plain()) {
			return false, nil
		}
	}
	return true, nil
}

// sameElse returns an error if two texts differ in more than our part.
func sameElse(was, is string, p part, o order) error {
	var bare [2]any
	for i, text := range []string{was, is} {
		text, err := p.outOf(text, o)
		if err != nil {
			return err
		}
		root, err := parseObject(text, "")
		if err != nil {
			return err
		}
		bare[i] = withoutEmpty(root.plain())
	}
	if !reflect.DeepEqual(bare[0], bare[1]) {
		return &lockkeeper.RefusedError{Act: "init", Reason: "the edit would change more than the entries of Lockkeeper", Next: "add these entries by hand; docs/hooks.md shows them"}
	}
	return nil
}

// withoutEmpty removes empty lists and objects. Hosts ignore them, and removing our part may or
// may not leave them.
func withoutEmpty(v any) any {
	all, isObject := v.(map[string]any)
	if !isObject {
		return v
	}
	out := map[string]any{}
	for key, value := range all {
		value = withoutEmpty(value)
		if list, isList := value.([]any); isList && len(list) == 0 {
			continue
		}
		if object, isObject := value.(map[string]any); isObject && len(object) == 0 {
			continue
		}
		out[key] = value
	}
	return out
}

// outOf removes our hooks. It also removes groups, events and the hooks member if they become
// empty.
func (hooks) outOf(text string, o order) (string, error) {
	for {
		root, err := parseObject(text, "hooks")
		if err != nil {
			return "", err
		}
		at, child := oursIn(root, o.host)
		if at == nil {
			return text, nil
		}
		text = cut(text, root, at, child)
	}
}

// oursIn finds the largest value that contains only our text: its parent, and its index there.
func oursIn(root *node, h Host) (at *node, child int) {
	all := root.find("hooks")
	if all == nil {
		return nil, 0
	}
	for i, m := range all.children() {
		for j, group := range m.value.elements() {
			for k, entry := range group.find("hooks").elements() {
				if !h.isOurs(entry.find("command").text()) {
					continue
				}
				switch {
				case len(group.find("hooks").elements()) > 1:
					return group.find("hooks"), k
				case len(m.value.elements()) > 1:
					return m.value, j
				case len(all.children()) > 1:
					return all, i
				}
				return root, root.index("hooks")
			}
		}
	}
	return nil, 0
}

// A Hook is one of our hooks that a host finds.
type Hook struct {
	Event   string `json:"event"`
	Matcher string `json:"matcher,omitempty"`
	Command string `json:"command"`
	File    string `json:"file"` // path of the file, for people

	// Differs says how the hook differs from what enrolling writes, so that it may not work.
	// Empty: it does at least the same.
	Differs string `json:"differs,omitempty"`

	// Doubt says why the host may drop the whole file. Empty: the host is known to accept it.
	Doubt string `json:"doubt,omitempty"`

	host  Host
	group *node // the group that contains the hook
}

// hooksIn lists our hooks in a file, in the order of the host's events.
func hooksIn(text string, h Host) (list []Hook, err error) {
	root, err := parseObject(text, "hooks")
	if err != nil {
		return nil, err
	}
	for _, ev := range h.turns {
		for _, group := range root.find("hooks", ev.name).elements() {
			for _, entry := range group.find("hooks").elements() {
				if command := entry.find("command").text(); h.isOurs(command) {
					list = append(list, Hook{Event: ev.name, Matcher: group.find("matcher").text(), Command: command, Differs: h.differs(ev, group, entry), host: h, group: group})
				}
			}
		}
	}
	return list, nil
}
