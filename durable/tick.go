package durable

import "time"

// FileTick is how far the clock that stamps files may lag: a file may seem to be written
// this much earlier than it was.
const FileTick = 10 * time.Millisecond
