package enrol

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Hosts ask all hooks of a call at once, or one after the other, and let each answer with
// another input. Ours is shown the first input, and what is carried out is the last.

// othersIn lists the hooks of others in a file that may change what a call of ours writes.
func othersIn(root *node, h Host, file string) (list []Hook) {
	for _, event := range h.changing {
		for _, group := range root.find("hooks", event).elements() {
			matcher := group.find("matcher").text()
			if listOfNames.MatchString(matcher) && !meets(matcher, h.turns[0].matcher) {
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

// meets reports whether a list of names has one of ours; ours is empty for all tools.
func meets(names, ours string) bool {
	return ours == "" || slices.ContainsFunc(strings.Split(names, "|"), func(name string) bool { return slices.Contains(strings.Split(ours, "|"), name) })
}

// pluginsOfOthers lists such hooks in the enabled plugins of others. A plugin that cannot be read
// counts as having one.
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
			list = append(list, Hook{Event: "hooks that are not known", File: known, host: h})
			continue
		}
		list = append(list, othersIn(root, h, known)...)
	}
	return list, err
}

// hooksOfPlugin is the file in which a plugin usually has its hooks, and an error for one
// whose manifest names others.
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
