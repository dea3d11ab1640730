package simulate

// A Tier describes how many items contend for a file. It is for people; the scheduler does not
// use it.
type Tier string

// The tiers.
const (
	TierApp        Tier = "app"        // several projects use it
	TierModule     Tier = "module"     // several controllers of one project use it
	TierController Tier = "controller" // one controller uses it
)

var allTiers = []Tier{TierApp, TierModule, TierController}

// tier returns the tier of a path, from the items that use it or paths above or below it.
func (m *model) tier(path string) Tier {
	var first *Item
	tier := TierController
	m.paths.around(path, func(u use) {
		it := m.items[u.item]
		switch {
		case first == nil:
			first = it
		case it.Project != first.Project:
			tier = TierApp
		case tier == TierController && it.controller() != first.controller():
			tier = TierModule
		}
	})
	return tier
}
