package refusal

import "fmt"

// Free returns the message that a refused path is free.
func Free(path string, ticket int) string {
	return fmt.Sprintf("FREE %s (ticket %d): you may write it now. Read it first; it may have changed.", Line(path), ticket)
}

// Asked returns the message that a person asks the session for a file that it holds.
func Asked(path, by string) string {
	return fmt.Sprintf("ASKED %s, which you hold: %s waits for it. Finish this file first, then end your turn; that releases it.", Line(path), Line(by))
}

func Landed(path string) string {
	return fmt.Sprintf("LANDED your deferred patch of %s.", Line(path))
}

// NotLanded returns the message that a deferred patch could not land, and where it is kept.
func NotLanded(path, why, rescue string) string {
	return fmt.Sprintf("NOT LANDED your deferred patch of %s: %s. It is kept: lockkeeper rescue show %s.", Line(path), Line(why), rescue)
}

// Unreadable returns the message that a damaged deferred patch with unknown author was set aside.
func Unreadable(file string) string {
	return fmt.Sprintf("UNREADABLE a damaged deferred patch, whose author and file are unknown. It is set aside as %s; a person must check it.", Line(file))
}
