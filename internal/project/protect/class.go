package protect

// A Class says why a file is protected, and so who may change it.
type Class uint8

// The classes. Agents write none of them.
const (
	Git       Class = iota + 1 // belongs to git
	Hooks                      // is a hook, or decides which programs agents, editors, shells and hooks start
	Own                        // belongs to Lockkeeper
	Documents                  // is a document of a flow
)

// Reason says why agents do not write a file of this class.
func (c Class) Reason() string {
	switch c {
	case Git:
		return "it belongs to git"
	case Hooks:
		return "it is a hook, or decides which programs agents, editors, shells and hooks start, so only a person changes it"
	case Documents:
		return "it is a document of a flow, so only the flow and people change it"
	default:
		return "it is Lockkeeper's own file, so only a person changes it"
	}
}

// Next says what to do instead.
func (c Class) Next() string {
	switch c {
	case Git:
		return "use git"
	case Documents:
		return "lockkeeper decide, or let a person edit it"
	default:
		return "let a person edit it"
	}
}
