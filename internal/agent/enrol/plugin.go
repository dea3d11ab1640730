package enrol

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/internal/project/protect"
)

// installed is the file in which Claude Code lists its plugins and their directories.
const installed = "~/.claude/plugins/installed_plugins.json"

// pluginRoot is how commands of a plugin name its directory. Claude Code replaces it.
const pluginRoot = "${CLAUDE_PLUGIN_ROOT}"

// pluginHooks finds our hooks in our plugin if it is enabled. unknown says why the hooks of an
// enabled plugin cannot be determined. It does not see a plugin that was loaded for one session,
// because no file lists it.
func (s Site) pluginHooks(h Host) (list []Hook, unknown string, err error) {
	if !h.plugins {
		return nil, "", nil
	}
	name, err := s.pluginOn(h)
	if err != nil || name == "" {
		return nil, "", err
	}
	dir, err := s.pluginDir(name)
	if err != nil {
		return nil, fmt.Sprintf("the plugin %s is enabled; whether its hooks run is unknown: %v", name, err), nil
	}
	file := filepath.Join(dir, "hooks", "hooks.json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Sprintf("the plugin %s is enabled, but %s is missing", name, file), nil
	}
	read := strings.ReplaceAll(string(text), pluginRoot, dir)
	if err == nil {
		list, err = hooksIn(read, h)
	}
	if err != nil {
		return nil, "", refused(Edit{Path: file, Before: text}, err)
	}
	return h.placed(list, "plugin "+name, file, read), "", nil
}

// pluginOn returns our enabled plugin with the name of its marketplace, or "" if none is enabled.
func (s Site) pluginOn(h Host) (string, error) {
	on, err := s.pluginsOn(h)
	if i := slices.IndexFunc(on, isOurPlugin); i >= 0 {
		return on[i], err
	}
	return "", err
}

func isOurPlugin(name string) bool { return strings.HasPrefix(name, serverName+"@") }

// pluginsOn returns the enabled plugins, sorted. A narrower settings file overrides a wider one,
// and the machine's file overrides all.
func (s Site) pluginsOn(h Host) (list []string, err error) {
	on := map[string]bool{}
	user, project := "~/.claude/settings.json", []string{".claude/settings.json", ".claude/settings.local.json"}
	var machine []string
	for _, file := range h.settings() {
		if filepath.IsAbs(file) {
			found, wrong := s.named(file)
			machine, err = append(machine, found...), errors.Join(err, wrong)
		}
	}
	for _, file := range slices.Concat([]string{user}, project, machine) {
		value, wrong := s.setting(file, "enabledPlugins")
		err = errors.Join(err, wrong)
		set, _ := value.(map[string]any)
		for plugin, is := range set {
			on[plugin] = is == true || !isOurPlugin(plugin) && is != false // if in doubt, a plugin of others counts as enabled
		}
	}
	for plugin, is := range on {
		if is {
			list = append(list, plugin)
		}
	}
	slices.Sort(list)
	return list, err
}

// pluginDir returns the directory of a plugin. Claude Code may use any of several directories
// listed for a name, so there must be exactly one, and it must apply to this codebase.
func (s Site) pluginDir(name string) (string, error) {
	value, err := s.setting(installed, "plugins", name)
	if err != nil {
		return "", err
	}
	entries, _ := value.([]any)
	var dirs []string
	here := false
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		dir, _ := entry["installPath"].(string)
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		project, _ := entry["projectPath"].(string)
		here = here || entry["scope"] == "user" || entry["scope"] == "managed" || project != "" && protect.Real(project) == protect.Real(s.Root)
	}
	switch {
	case len(dirs) > 1:
		return "", fmt.Errorf("%s lists several directories for the plugin: %s", installed, strings.Join(dirs, ", "))
	case len(dirs) == 0 || !filepath.IsAbs(dirs[0]):
		return "", fmt.Errorf("%s lists no directory for the plugin", installed)
	case !here:
		return "", fmt.Errorf("%s lists the plugin only for other projects", installed)
	}
	return dirs[0], nil
}
