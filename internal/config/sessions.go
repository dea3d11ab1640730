package config

// Sessions says how interactive agents are checked.
type Sessions struct {
	Uncovered string `key:"uncovered" env:"LOCKKEEPER_UNCOVERED" enum:"keep put_back" doc:"What is done about a file that somebody holds and a command of another session changed: keep shows it and keeps the change; put_back restores the file as well, where a command that may write names it and nobody else is known to be at work; a person's edit in that very moment is kept on the shelf."`
}

// PutBack is the Sessions.Uncovered that restores files.
const PutBack = "put_back"

func defaultSessions() Sessions { return Sessions{Uncovered: "keep"} }
