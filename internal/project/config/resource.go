package config

// A Resource is a name for files that are locked together. Its files may contain the
// placeholders of its name, such as {nn}.
type Resource struct {
	Files []string `key:"files" is:"path" doc:"The files it covers, relative to the root. A directory ends in a slash. Placeholders of the name can be used: {nn} is a number of two or more digits."`
	Node  string   `key:"node" pattern:"^[a-z]+/\\{[a-z]+\\}(/[a-z]+/\\{[a-z]+\\})*$" doc:"Instead of files: a node in a tree of projects, maps and sketches, such as project/{project}/map/{map}."`
	Mode  string   `key:"mode" enum:"write read" doc:"How a claim locks it: write (default) is exclusive, read is shared with other readers."`
}

// An Operation lists the locks that an operation needs.
type Operation struct {
	About      string   `key:"about" doc:"A description for people."`
	Prompt     int      `key:"prompt" min:"0" max:"9999" doc:"A prompt number that also names the operation. 0: none."`
	Read       []string `key:"read" doc:"Resources it reads."`
	Write      []string `key:"write" doc:"Resources it writes."`
	ReadAll    []string `key:"read_all" doc:"Nodes it reads with everything below them."`
	WriteAll   []string `key:"write_all" doc:"Nodes it writes with everything below them."`
	MayWrite   []string `key:"may_write" doc:"Resources it writes in some cases. The caller names them."`
	Several    []string `key:"several" doc:"Resources of which the caller must name two or more, because the operation works between them."`
	Unlocked   string   `key:"unlocked" doc:"Why it needs no lock. Required if it has no locks."`
	MinObjects int      `key:"min_objects" min:"0" max:"1000000000" doc:"Minimum number of objects. 0: no limit."`
	MaxObjects int      `key:"max_objects" min:"0" max:"1000000000" doc:"Maximum number of objects. Empty: no limit."`
	Beyond     string   `key:"beyond" doc:"The operation to use for more objects than max_objects."`
	Approval   string   `key:"approval" enum:"none required" doc:"Whether a person must approve each time, on a terminal."`
}

// ApprovalRequired is the Approval of an operation that a person must approve. Empty means none.
const ApprovalRequired = "required"
