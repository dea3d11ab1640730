package lockkeeper

// A Process identifies a process. A later process with the same number is not mistaken for
// it.
type Process struct {
	Host  string `json:"host"`
	Boot  string `json:"boot"`  // boot id of the host
	PIDNS string `json:"pidns"` // PID namespace to which PID belongs
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // start time in clock ticks since boot

	// These fields describe what the process supervises while it runs a command under a grant.
	Group  int    `json:"group,omitempty"`  // process group of the keeper; in old records, of the command
	Keeper uint64 `json:"keeper,omitempty"` // start time of process Group, the parent of all processes that the command leaves; 0: no keeper
	Cgroup string `json:"cgroup,omitempty"` // control group of the command, from the root of the hierarchy; empty: none

	// Presence names a file that is locked while the process or the keeper lives, for
	// observers that cannot see either; empty: none.
	Presence string `json:"presence,omitempty"`
}

// Liveness says whether a process is alive, as far as this process can tell.
type Liveness uint8

// These are the values of Liveness. ProcessUnknown means that this process cannot tell: the other
// process is on another host or in another PID namespace.
const (
	ProcessUnknown Liveness = iota
	ProcessAlive
	ProcessDead
)

func (l Liveness) String() string {
	switch l {
	case ProcessAlive:
		return "alive"
	case ProcessDead:
		return "dead"
	}
	return "unknown"
}
