package view

import (
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
)

// internalPaths are the directories that only Lockkeeper itself locks: documents of flows, its own
// directory, and git's during a commit. Their locks order the steps of a run and rarely interest a
// person.
type internalPaths []string

func (rd *Reader) internalPaths() internalPaths {
	c := rd.project.Config.Run
	return slices.DeleteFunc(internalPaths{project.DirName, ".git", c.SidecarDir, c.AnalysisDir}, func(dir string) bool { return dir == "" || dir == "." })
}

// has reports whether a path is one of these directories, or below it. The lock that disables the
// checks of sessions is no internal one: a person acquires and releases it.
func (in internalPaths) has(path string) bool {
	return !session.IsOff(path) && slices.ContainsFunc(in, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// routine are the events that tell only that locks were acquired and released in order.
var routine = []lockkeeper.EventKind{
	lockkeeper.EventAcquired, lockkeeper.EventReleased, lockkeeper.EventWaiting, lockkeeper.EventWithdrawn, lockkeeper.EventUpgraded, lockkeeper.EventExtended,
}

// isRoutine reports whether an event is about nothing but internal locks that came and went in order.
// A lock that expired or was recovered or forced is not routine.
func (in internalPaths) isRoutine(ev lockkeeper.Event) bool {
	return len(ev.Locks) > 0 && slices.Contains(routine, ev.Kind) && len(in.others(ev.Locks)) == 0
}

// others returns the locks that are not internal.
func (in internalPaths) others(locks []lockkeeper.Lock) (list []lockkeeper.Lock) {
	for _, l := range locks {
		if !in.has(l.Path) {
			list = append(list, l)
		}
	}
	return list
}
