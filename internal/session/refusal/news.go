package refusal

import "fmt"

// Free tells that a path somebody was refused is free.
func Free(path string, ticket int) string {
	return fmt.Sprintf("FREE %s (ticket %d): you may write it now. Read it first; it may have changed.", line(path), ticket)
}

// Landed tells that a deferred patch has landed.
func Landed(path string) string {
	return fmt.Sprintf("LANDED your deferred patch of %s.", line(path))
}

// NotLanded tells that a deferred patch could not land, and where it is kept.
func NotLanded(path, why, rescue string) string {
	return fmt.Sprintf("NOT LANDED your deferred patch of %s: %s. It is kept: lockkeeper rescue show %s.", line(path), line(why), rescue)
}

// Unreadable tells that a deferred patch, whose owner nobody knows, was set aside.
func Unreadable(file string) string {
	return fmt.Sprintf("UNREADABLE a deferred patch, of whom and of what nobody can tell: it is set aside as %s, for a person to look at.", line(file))
}
