package hook

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"lockkeeper/internal/agent/program"
)

// Tools of MCP servers, and tools of a host that this package does not know, may have any effect.
// The files that the input of an MCP tool names are judged before the call, unless the tool only
// reads by its name. After the call, the files of others are compared, as after a command.

// foreign notes what is known about a call of a tool of an MCP server, or of an unknown tool. agent
// is the name of the host's program.
func (c *Call) foreign(agent string, input json.RawMessage) {
	if isOwnTool(c.Tool) || slices.Contains(program.Idle(agent), c.Tool) {
		return
	}
	c.Act = c.Tool + " " + string(input)
	if !isServerTool(c.Tool) || readsOnly(c.Tool) {
		return
	}
	var value any
	if json.Unmarshal(input, &value) == nil {
		c.Writes = namedFiles("", value)
	}
}

// isServerTool reports whether a tool belongs to an MCP server. The prefix of Gemini CLI has one
// underscore.
func isServerTool(tool string) bool { return strings.HasPrefix(tool, "mcp_") }

// isOwnTool reports whether a tool belongs to our MCP server, which checks its own writes.
func isOwnTool(tool string) bool {
	return strings.HasPrefix(tool, "mcp__"+ownProgram+"__") || strings.HasPrefix(tool, "mcp_"+ownProgram+"_")
}

// toolWords holds the words in names of tools and arguments that this file understands.
type toolWords struct{ reads, writes, files *regexp.Regexp }

var toolWordsOf = sync.OnceValue(func() toolWords {
	const begin, end = `(?i)(^|[^a-z])(`, `)([^a-z]|$)`
	return toolWords{
		reads: regexp.MustCompile(begin + `read|get|list|ls|search|find|grep|glob|view|show|stat|info|tree|open|query|fetch|describe|count|diff|status|log|check|exists|navigate|screenshot` + end),
		writes: regexp.MustCompile(begin + `write|edit|create|update|replace|insert|append|patch|apply|delete|remove|move|rename|copy|save|set|put|add|make|format|refactor|modify|change|run|exec|execute|shell` +
			end),
		files: regexp.MustCompile(begin + `path|paths|file|files|filename|filepath|source|destination|dest|src|dst|target|uri|from|to` + end),
	}
})

// spaced separates the words of a name that are joined as in filePath.
var spaced = strings.NewReplacer("_", " ", "-", " ", ".", " ")

func wordsIn(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return spaced.Replace(b.String())
}

// readsOnly reports whether a tool only reads, by the words of its name after the server's.
func readsOnly(tool string) bool {
	name := tool
	if at := strings.LastIndex(tool, "__"); at >= 0 {
		name = tool[at+2:]
	}
	name = wordsIn(name)
	return toolWordsOf().reads.MatchString(name) && !toolWordsOf().writes.MatchString(name)
}

// namedFiles lists the files that the arguments of a tool name. A text counts only under a name
// that is usual for files, and if it can be a path.
func namedFiles(name string, value any) (list []Touch) {
	switch v := value.(type) {
	case string:
		if file := pathIn(v); file != "" && toolWordsOf().files.MatchString(wordsIn(name)) {
			list = append(list, Touch{File: file})
		}
	case []any:
		for _, in := range v {
			list = append(list, namedFiles(name, in)...)
		}
	case map[string]any:
		for key, in := range v {
			list = append(list, namedFiles(key, in)...)
		}
	}
	slices.SortFunc(list, func(a, b Touch) int { return strings.Compare(a.File, b.File) })
	return slices.Compact(list)
}

// pathIn returns the path that a text names, or "".
func pathIn(text string) string {
	const longest = 4096
	if text == "" || len(text) > longest || strings.ContainsAny(text, "\n\r\x00") {
		return ""
	}
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "file" {
			return ""
		}
		return u.Path
	}
	return text
}

// existing keeps the files that exist or could be created where they are named. Other texts are
// not names of files.
func existing(dir string, files []Touch) []Touch {
	return slices.DeleteFunc(slices.Clone(files), func(f Touch) bool {
		file := absolute(dir, f.File)
		return !isThere(file) && !isDir(filepath.Dir(file))
	})
}
