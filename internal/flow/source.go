package flow

import "io/fs"

// Units lists the units of a flow, and what is known of each from its source.
type Units struct {
	Names  []string
	Found  map[string]FoundUnit   // of Codebase
	Groups map[string]ScreenGroup // of FromManifest
}

// Units finds the units of the flow in its source. If some are invalid, it returns the others
// beside the error.
func (f Flow) Units(tree fs.FS, o DiscoverOptions, manifest *Manifest) (Units, error) {
	u := Units{Found: map[string]FoundUnit{}, Groups: map[string]ScreenGroup{}}
	switch f.Source {
	case FromPlan:
		u.Names = []string{f.OneUnit}
		return u, nil
	case FromManifest:
		for _, g := range manifest.Controllers() {
			u.Names, u.Groups[g.Unit] = append(u.Names, g.Unit), g
		}
		return u, nil
	}
	found, err := Discover(tree, o)
	for _, at := range found {
		u.Names, u.Found[at.Name] = append(u.Names, at.Name), at
	}
	return u, err
}
