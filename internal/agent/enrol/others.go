package enrol

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Hosts run all hooks of a call at once or one after another, and each hook may replace the
// input. Ours sees the first input, but the host executes the last.

// othersIn lists hooks of other programs in a file that may change what a checked call writes.
func othersIn(root *node, h Host, file string) (list []Hook) {
	for _, event := range h.changing {
		for _, group := range root.find("hooks", event).elements() {
			matcher := group.find("matcher").text()
			if listOfNames.MatchString(matcher) && !intersects(matcher, h.turns[0].matcher) {
				continue
			}
			for _, entry := range group.find("hooks").elements() {
				if command := entry.find("command").text(); !h.isOurs(command) {
					list = append(list, Hook{Event: event, Matcher: matcher, Command: command, File: file, host: h, group: group})
				}
			}
		}
	}
	return list
}

// intersects reports whether a list of names includes one of ours. If the list ours is empty, it
// means all tools.
func intersects(names, ours string) bool {
	if idle, is := excepted(ours); is {
		return slices.ContainsFunc(strings.Split(names, "|"), func(name string) bool { return !slices.Contains(idle, name) })
	}
	return ours == "" || slices.ContainsFunc(strings.Split(names, "|"), func(name string) bool { return slices.Contains(strings.Split(ours, "|"), name) })
}

// pluginsOfOthers lists the hooks in other enabled plugins that may replace the input of a call. A
// plugin that cannot be read counts as having one.
func (s Site) pluginsOfOthers(h Host) (list []Hook, err error) {
	if !h.plugins {
		return nil, nil
	}
	on, err := s.pluginsOn(h)
	for _, name := range on {
		if isOurPlugin(name) {
			continue
		}
		known := "plugin " + name
		root, wrong := s.hooksOfPlugin(name)
		if wrong != nil {
			list = append(list, Hook{Event: "unknown hooks", File: known, host: h})
			continue
		}
		list = append(list, othersIn(root, h, known)...)
	}
	return list, err
}

// hooksOfPlugin returns the hooks in a plugin's usual file. It fails if the plugin's manifest
// names other files.
func (s Site) hooksOfPlugin(name string) (*node, error) {
	dir, err := s.pluginDir(name)
	if err != nil {
		return nil, err
	}
	var read [2]*node
	for i, file := range []string{".claude-plugin/plugin.json", "hooks/hooks.json"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if read[i], err = parseObject(string(text), ""); err != nil {
			return nil, err
		}
	}
	if read[0].find("hooks") != nil {
		return nil, errors.New("its manifest names hooks")
	}
	return read[1], nil
}
