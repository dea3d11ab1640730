package durable

import "time"

// FileTick is how far the clock that sets file times may lag: the time of a file may be this
// much earlier than the write.
const FileTick = 10 * time.Millisecond
