// Package locks has the commands that acquire, keep and release locks, and defer,
// which queues a patch until its file is unlocked.
package locks
