package sandbox

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
)

// addOverlays places the merged directories, and hides the directories of their stacks.
func (r *root) addOverlays(o order) error {
	if len(o.Overlays) == 0 {
		return nil
	}
	seen := slices.Concat(systemPaths(), o.Read, layersOf(o.Scratch), o.Write)
	for _, v := range o.Overlays {
		for _, path := range append(slices.Clone(v.Lower), v.Upper, v.Work) {
			if slices.ContainsFunc(seen, func(dir string) bool { return within(path, dir) }) {
				if err := r.seal(path, "555"); err != nil {
					return err
				}
			}
		}
	}
	for _, v := range o.Overlays {
		mount, err := v.Mount(v.Sub)
		if err != nil {
			return err
		}
		at := cmp.Or(o.Places[v.At], v.At)
		r.put(at, &mountPoint{mount: mount, dir: true})
		if v.Upper != "" {
			r.writable = append(r.writable, at)
		}
	}
	return nil
}

// overlay places a directory that the command may change privately.
func (r *root) overlay(s Scratch, o order, number int) error {
	if o.Private == "" {
		if s.exists() {
			return r.bind(s.Path, s.Path, readOnly)
		}
		return nil
	}
	changes := s.Changes
	if changes == "" {
		changes = filepath.Join(o.privateLayers(), fmt.Sprint(number))
	}
	lower := s.Below
	if s.exists() {
		lower = append([]string{s.Path}, lower...)
	}
	mount, err := newOverlay(lower, changes)
	if err == nil {
		r.put(s.Path, &mountPoint{mount: mount, dir: true})
		r.writable = append(r.writable, s.Path)
		return nil
	}
	if s.exists() && !s.Rebuilt {
		return r.bind(s.Path, s.Path, readOnly)
	}
	r.writable = append(r.writable, s.Path)
	return r.bind(s.Path, filepath.Join(changes, "upper"), readWrite)
}
