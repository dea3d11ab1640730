package lockkeeper

// Life is what is known about a process from here.
type Life uint8

// The judgements. Unknown is the answer wherever a process cannot be judged:
// on another host, or in another PID namespace.
const (
	LifeUnknown Life = iota
	LifeAlive
	LifeDead
)

func (l Life) String() string {
	switch l {
	case LifeAlive:
		return "alive"
	case LifeDead:
		return "dead"
	}
	return "unknown"
}
