package config

// Sessions configures how interactive agents are checked.
type Sessions struct {
	Uncovered string `key:"uncovered" env:"LOCKKEEPER_UNCOVERED" enum:"keep put_back" default:"keep" doc:"What happens if a command of one session changes a file that another session holds. keep shows the change and keeps a copy. put_back also restores the file if the text of the command proves that it made the change. A person's edit is never reverted."`
}

// PutBack is the Sessions.Uncovered that restores files.
const PutBack = "put_back"
