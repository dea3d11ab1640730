package durable

import "time"

// FileTick is how late the clock that stamps files may be: a file that was written right
// after a moment may seem this much older.
const FileTick = 10 * time.Millisecond
