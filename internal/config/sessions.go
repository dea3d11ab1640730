package config

// Sessions says how interactive agents are checked.
type Sessions struct {
	Uncovered string `key:"uncovered" env:"LOCKKEEPER_UNCOVERED" enum:"keep put_back" doc:"What is done about a file that somebody holds and a command of another session changed: keep shows it and keeps the change; put_back restores the file as well, where the command's own text proves that it made the change: all that is new is spelled in it. A person's edit is never put back."`
}

// PutBack is the Sessions.Uncovered that restores files.
const PutBack = "put_back"

func defaultSessions() Sessions { return Sessions{Uncovered: "keep"} }
