package simulate

// Tier says how many contend for a file: a way of thinking for people, the scheduler
// knows files alone.
type Tier string

// The tiers. A file is in that of its most specific user until another one comes.
const (
	TierApp        Tier = "app"        // several projects use it
	TierModule     Tier = "module"     // several controllers of one project do
	TierController Tier = "controller" // the rest
)

var allTiers = []Tier{TierApp, TierModule, TierController}

// tier is the tier of a path, by the items that use it, or something above or below it.
func (m *model) tier(path string) Tier {
	var first *Item
	tier := TierController
	m.places.around(path, func(u use) {
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
