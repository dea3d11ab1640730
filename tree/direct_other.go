//go:build unix && !linux

package tree

import "lockkeeper"

// resolveDirect needs a system that can open a path without following links.
func (w *walk) resolveDirect(int) (lockkeeper.Target, bool) { return lockkeeper.Target{}, false }
