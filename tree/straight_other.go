//go:build unix && !linux

package tree

import "lockkeeper"

// straight is for systems that can open a path without following any link.
func (w *walk) straight(int) (lockkeeper.Target, bool) { return lockkeeper.Target{}, false }
