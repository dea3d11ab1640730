//go:build unix

package workspace

import "lockkeeper"

// Base is what was copied to a path, as a gate.Change wants it: nothing, where there was
// no file.
func (w *Workspace) Base(path string) (lockkeeper.Version, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return lockkeeper.Version{}, err
	}
	p, err := clean(path)
	if err != nil {
		return lockkeeper.Version{}, err
	}
	if was := w.base.find(p); was != nil && was.Mode.IsRegular() {
		return was.version(), nil
	}
	return lockkeeper.Version{}, nil
}
