package config

// Resource is something that is locked by a name of its own. What it covers may hold
// the placeholders of its name, such as {nn}.
type Resource struct {
	Files []string `key:"files" is:"path" doc:"What it covers: files, and directories with a slash at the end, from the root. Placeholders of the name stand for what they stand for there: {nn} is a number of two digits or more."`
	Node  string   `key:"node" pattern:"^[a-z]+/\\{[a-z]+\\}(/[a-z]+/\\{[a-z]+\\})*$" doc:"Instead of files: a place in a tree of projects, maps and sketches, such as project/{project}/map/{map}."`
	Mode  string   `key:"mode" enum:"write read" doc:"How a claim holds it: write is alone, and the default; read is beside other readers."`
}

// Operation is a row of the table that says which locks an operation needs.
type Operation struct {
	About      string   `key:"about" doc:"What it does, for people."`
	Prompt     int      `key:"prompt" min:"0" max:"9999" doc:"The number of the prompt that it is; 0: none."`
	Read       []string `key:"read" doc:"Resources that it reads."`
	Write      []string `key:"write" doc:"Resources that it writes."`
	ReadAll    []string `key:"read_all" doc:"Nodes that it reads with everything below them."`
	WriteAll   []string `key:"write_all" doc:"Nodes that it writes with everything below them."`
	MayWrite   []string `key:"may_write" doc:"Resources that it writes in some cases: who asks says which."`
	Several    []string `key:"several" doc:"Those of them of which two or more have to be named, because it works between them."`
	Unlocked   string   `key:"unlocked" doc:"Why it needs no lock. A row without locks has to say so."`
	MinObjects int      `key:"min_objects" min:"0" max:"1000000000" doc:"It is for this many objects, or more; 0: no such limit."`
	MaxObjects int      `key:"max_objects" min:"0" max:"1000000000" doc:"It is for this many objects at most; left out: no such limit."`
	Beyond     string   `key:"beyond" doc:"The operation that it is with more objects than max_objects."`
	Approval   string   `key:"approval" enum:"none required" doc:"Whether a person has to agree, on a terminal, each time."`
}

// ApprovalRequired is the Approval of an operation that a person has to agree to; left
// empty it is none.
const ApprovalRequired = "required"
