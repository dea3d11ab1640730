package enrol

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"lockkeeper"

	"github.com/BurntSushi/toml"
)

// serverName is the name of our MCP server in the settings of hosts.
const serverName = "lockkeeper"

// mcpServer is the entry with which a host starts the server.
type mcpServer struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// localServer is the entry of the MCP server in the settings of opencode.
type localServer struct {
	Type    string   `json:"type"`
	Command []string `json:"command"`
}

func (o order) server() any {
	if o.host.scripted {
		return localServer{"local", []string{o.program.Path, "mcp"}}
	}
	return mcpServer{o.program.Path, []string{"mcp"}}
}

// servers is the part with the MCP entry in a JSON file. An existing entry with our name stays
// unchanged, because a person may have changed how the server starts.
type servers struct{ key string } // the member with all servers

func (p servers) into(text string, o order) (string, error) {
	root, err := parseObject(text, p.key)
	if err != nil || root.find(p.key, serverName) != nil {
		return text, err
	}
	out := text
	if strings.TrimSpace(out) == "" {
		out = "{}\n"
		if root, err = parseJSON(out); err != nil {
			return "", err
		}
	}
	if all := root.find(p.key); all != nil {
		out, err = put(out, root, all, serverName, o.server())
	} else {
		out, err = put(out, root, root, p.key, map[string]any{serverName: o.server()})
	}
	if err != nil {
		return "", err
	}
	return out, sameElse(text, out, p, o)
}

func (p servers) outOf(text string, o order) (string, error) {
	root, err := parseObject(text, p.key)
	if err != nil {
		return "", err
	}
	all := root.find(p.key)
	if ours := all.find(serverName); ours == nil || !isOurServer(ours.plain()) {
		return text, nil
	}
	at, key := all, serverName
	if len(all.children()) == 1 {
		at, key = root, p.key
	}
	return cut(text, root, at, at.index(key)), nil
}

// isOurServer reports whether an entry is one that enrolling writes, wherever the program is
// installed.
func isOurServer(entry any) bool {
	m, _ := entry.(map[string]any)
	command, _ := m["command"].(string)
	if list, _ := m["command"].([]any); len(list) == 2 && m["type"] == "local" {
		command, _ = list[0].(string)
		return len(m) == 2 && strings.HasSuffix("/"+command, "/"+serverName) && list[1] == "mcp"
	}
	known := 2
	if _, passed := m["env_vars"]; passed {
		known = 3
	}
	return len(m) == known && strings.HasSuffix("/"+command, "/"+serverName) && reflect.DeepEqual(m["args"], []any{"mcp"})
}

// tomlServer is the part with the MCP entry in a TOML file: a table at the end.
type tomlServer struct{}

// tomlMark begins our table. The table ends with the line of the arguments or of the variables.
const tomlMark = "[mcp_servers." + serverName + "]"

// tomlVariables makes Codex pass on the variables that decide whose locks and sessions the server
// uses. Codex gives servers only a few variables, but gives hooks its whole environment. Without
// these variables the server would be a separate session, and conflict with the session of the
// hooks.
const tomlVariables = `env_vars = ["XDG_STATE_HOME", "LOCKKEEPER_STORE", "PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"]`

// inlineServers matches an inline table of servers. Some TOML parsers allow adding to such a
// table, but those of hosts refuse it.
var inlineServers = regexp.MustCompile(`(?m)^[ \t]*mcp_servers[ \t]*=`)

func (p tomlServer) into(text string, o order) (string, error) {
	was, err := parseTOML(text)
	if err != nil {
		return "", err
	}
	if servers, _ := was["mcp_servers"].(map[string]any); servers[serverName] != nil {
		return p.renewed(text, servers[serverName], o)
	}
	if inline := inlineServers.FindStringIndex(text); inline != nil && was["mcp_servers"] != nil {
		return "", &syntaxError{inline[0], "mcp_servers is an inline table, so no server can be added"}
	}
	newline := newlineOf(text)
	entry, err := encode(o.program.Path, "", "") // TOML basic strings have the syntax of JSON strings
	if err != nil {
		return "", err
	}
	table := strings.Join([]string{tomlMark, "command = " + entry, `args = ["mcp"]`, tomlVariables, ""}, newline)
	out := text
	if out != "" {
		if !strings.HasSuffix(out, "\n") {
			out += newline
		}
		out += newline
	}
	out += table
	is, err := parseTOML(out)
	if err != nil {
		return "", err
	}
	all, _ := is["mcp_servers"].(map[string]any)
	delete(all, serverName)
	if len(all) == 0 && was["mcp_servers"] == nil {
		delete(is, "mcp_servers")
	}
	if !reflect.DeepEqual(was, is) {
		return "", lockkeeper.WithNext(errors.New("the edit would change more than the entries of Lockkeeper"), "add it by hand: "+strings.ReplaceAll(table, newline, " "))
	}
	return out, nil
}

// renewed returns a text that already has a server with our name. It replaces an entry of an
// earlier version, which passes on no variables.
func (p tomlServer) renewed(text string, entry any, o order) (string, error) {
	if m, _ := entry.(map[string]any); !isOurServer(entry) || m["env_vars"] != nil {
		return text, nil
	}
	bare, err := p.outOf(text, o)
	if err != nil || bare == text {
		return text, err
	}
	return p.into(bare, o)
}

func (tomlServer) outOf(text string, _ order) (string, error) {
	all, err := parseTOML(text)
	if err != nil {
		return "", err
	}
	if servers, _ := all["mcp_servers"].(map[string]any); !isOurServer(servers[serverName]) {
		return text, nil
	}
	lines := strings.SplitAfter(text, "\n")
	for i := range lines {
		if strings.TrimSpace(lines[i]) != tomlMark || i+2 >= len(lines) || !strings.HasPrefix(lines[i+1], "command") || !strings.HasPrefix(lines[i+2], "args") {
			continue
		}
		rest := lines[i+3:]
		if len(rest) > 0 && strings.HasPrefix(rest[0], "env_vars") {
			rest = rest[1:]
		}
		if i > 0 && strings.TrimSpace(lines[i-1]) == "" {
			i-- // the empty line before the table is removed, too
		}
		return strings.Join(lines[:i], "") + strings.Join(rest, ""), nil
	}
	return text, nil
}

func parseTOML(text string) (map[string]any, error) {
	out := map[string]any{}
	_, err := toml.Decode(text, &out)
	if wrong := (toml.ParseError{}); errors.As(err, &wrong) {
		return nil, &syntaxError{at: wrong.Position.Start, reason: wrong.Message}
	}
	return out, err
}
