package flow

import "io/fs"

// Units has the units of a flow and the facts about each from its source.
type Units struct {
	Names  []string
	Found  map[string]FoundUnit   // for Codebase
	Groups map[string]ScreenGroup // for FromManifest
}

// Units finds the units of the flow in its source. If some units are invalid, it returns the
// others together with an error.
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
