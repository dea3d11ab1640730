//go:build !linux

package doctor

// fileSystem does nothing on this platform.
func (x *examination) fileSystem(string, bool) {}
