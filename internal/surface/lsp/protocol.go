package lsp

// These are the parts of the Language Server Protocol 3.17 that the server uses.

type textDocument struct {
	URI string `json:"uri"`
}

// documentParams are the parameters of notifications and requests about one document.
type documentParams struct {
	TextDocument textDocument `json:"textDocument"`
	Context      struct {
		Only []string `json:"only"`
	} `json:"context"` // set in a request for code actions
}

type commandParams struct {
	Command   string   `json:"command"`
	Arguments []string `json:"arguments"`
}

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type severity int

const severityWarning severity = 2

type diagnostic struct {
	Range    span     `json:"range"`
	Severity severity `json:"severity"`
	Code     string   `json:"code"`
	Source   string   `json:"source"`
	Message  string   `json:"message"`
}

type publishParams struct {
	URI         string       `json:"uri"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type messageType int

const (
	messageError   messageType = 1
	messageWarning messageType = 2
	messageInfo    messageType = 3
)

type messageParams struct {
	Type    messageType `json:"type"`
	Message string      `json:"message"`
}

type command struct {
	Title     string   `json:"title"`
	Command   string   `json:"command"`
	Arguments []string `json:"arguments"` // the URI of the document
}

type codeAction struct {
	Title       string       `json:"title"`
	Kind        string       `json:"kind"`
	Diagnostics []diagnostic `json:"diagnostics,omitempty"`
	Command     command      `json:"command"`
}

// quickFix is the kind of the server's code actions.
const quickFix = "quickfix"

// capabilities is what the server tells the editor about itself.
func capabilities(version string) any {
	type object = map[string]any
	return object{
		"serverInfo": object{"name": source, "version": version},
		"capabilities": object{
			"textDocumentSync":       object{"openClose": true, "change": 2, "save": true}, // 2: only the changes, not whole files
			"codeActionProvider":     object{"codeActionKinds": []string{quickFix}},
			"executeCommandProvider": object{"commands": commandNames()},
		},
	}
}

// source is the name of the server in diagnostics.
const source = "lockkeeper"
