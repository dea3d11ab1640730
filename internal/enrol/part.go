package enrol

import (
	"reflect"
	"strings"

	"lockkeeper"
)

// part is something of ours in a file of a host.
type part interface {
	// into is the text with it, as it is to be.
	into(text string, o order) (string, error)
	// outOf is the text without it, whatever version of ours it has.
	outOf(text string, o order) (string, error)
}

// order is for whom a part is made.
type order struct {
	host    Host
	program string // how it is called in a shell
	binary  string // the same for who starts programs without one
}

// hookGroup is how all hosts spell a hook.
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
	return hookGroup{ev.matcher, []hookEntry{{"command", o.host.command(o.program, ev), o.host.limit}}}
}

// hooks are those of a host, in a JSON file.
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
		at := root.get("hooks")
		list := at.get(ev.name)
		switch {
		case at == nil:
			out, err = put(out, root, root, "hooks", map[string]any{ev.name: []hookGroup{o.group(ev)}})
		case list == nil:
			out, err = put(out, root, at, ev.name, []hookGroup{o.group(ev)})
		case list.kind != '[':
			return "", &syntaxError{list.start, "hooks." + ev.name + " is no list"}
		default:
			out, err = put(out, root, list, "", o.group(ev))
		}
		if err != nil {
			return "", err
		}
	}
	return out, p.sameElse(text, out, o)
}

// parseObject reads a file that is one object, in which a member, if it is there, is one.
func parseObject(text, key string) (*node, error) {
	if strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")) == "" {
		return &node{kind: '{'}, nil
	}
	root, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	if root.kind != '{' {
		return nil, &syntaxError{root.start, "it is no object"}
	}
	if at := root.get(key); at != nil && at.kind != '{' {
		return nil, &syntaxError{at.start, key + " is no object"}
	}
	return root, nil
}

// isRight reports whether everything of ours is there, once, as it is to be.
func (p hooks) isRight(text string, o order) (bool, error) {
	found, err := hooksIn(text, o.host)
	if err != nil || len(found) != len(o.host.turns) {
		return false, err
	}
	for i, ev := range o.host.turns {
		if f := found[i]; f.Event != ev.name || f.Matcher != ev.matcher || f.Command != o.host.command(o.program, ev) || f.limit != float64(o.host.limit) || f.shared {
			return false, nil
		}
	}
	return true, nil
}

// sameElse holds that nothing but ours is different between two texts.
func (p hooks) sameElse(was, is string, o order) error {
	return sameElse(was, is, func(text string) (string, error) { return p.outOf(text, o) })
}

func sameElse(was, is string, strip func(string) (string, error)) error {
	var bare [2]any
	for i, text := range []string{was, is} {
		text, err := strip(text)
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
		return &lockkeeper.RefusedError{Act: "init", Reason: "its layout is such that more than our part would be changed", Next: "put our part in by hand; docs/hooks.md shows it"}
	}
	return nil
}

// withoutEmpty leaves out lists and objects in which nothing is: to the hosts they say
// nothing, and taking ours out may leave them or not.
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

// outOf takes out our hooks, the groups that have no other, the events that have no other
// group, and the hooks when that was all.
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
		text = cut(text, at, child)
	}
}

// oursIn finds the largest thing that is ours alone: in which value, as which child.
func oursIn(root *node, h Host) (at *node, child int) {
	all := root.get("hooks")
	if all == nil {
		return nil, 0
	}
	for i, m := range all.members {
		for j, group := range m.value.elements {
			for k, entry := range group.get("hooks").children() {
				if !h.isOurs(entry.get("command").text()) {
					continue
				}
				switch {
				case len(group.get("hooks").elements) > 1:
					return group.get("hooks"), k
				case len(m.value.elements) > 1:
					return m.value, j
				case len(all.members) > 1:
					return all, i
				}
				for r, top := range root.members {
					if top.value == all {
						return root, r
					}
				}
			}
		}
	}
	return nil, 0
}

func (n *node) children() []*node {
	if n == nil {
		return nil
	}
	return n.elements
}

// Hook is one of ours that a host finds.
type Hook struct {
	Event   string `json:"event"`
	Matcher string `json:"matcher,omitempty"`
	Command string `json:"command"`
	File    string `json:"file"` // as people know it

	limit  any
	shared bool // with another hook in one group
}

// hooksIn lists our hooks in a file, in the order of the host's events.
func hooksIn(text string, h Host) (list []Hook, err error) {
	root, err := parseObject(text, "hooks")
	if err != nil {
		return nil, err
	}
	for _, ev := range h.turns {
		for _, group := range root.find("hooks", ev.name).children() {
			entries := group.get("hooks").children()
			for _, entry := range entries {
				if command := entry.get("command").text(); h.isOurs(command) {
					f := Hook{Event: ev.name, Matcher: group.get("matcher").text(), Command: command, shared: len(entries) > 1}
					if t := entry.get("timeout"); t != nil {
						f.limit = t.value
					}
					list = append(list, f)
				}
			}
		}
	}
	return list, nil
}
