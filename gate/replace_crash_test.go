package gate_test

import (
	"fmt"
	"maps"
	"testing"

	"lockkeeper/gate"
	"lockkeeper/store/storetest"
)

// replaced is the directory whose entry current is replaced as a whole by newVersion.
const replaced = "test/m1"

var newVersion = map[string]string{"index": "new", "tiles/0/0": "new", "tiles/0/1": "new"}

// replacements returns two scenes: the directory does not exist yet, or it does.
func replacements() map[string]scene {
	old := map[string]string{
		".": "drwxr-xr-x ", "test": "drwxr-xr-x ", replaced: "drwxr-xr-x ", bystander: plain("stays"),
	}
	after := maps.Clone(old)
	for _, dir := range []string{"", "/tiles", "/tiles/0"} {
		after[replaced+"/current"+dir] = "drwxr-xr-x "
	}
	for path, content := range newVersion {
		after[replaced+"/current/"+path] = plain(content)
	}
	over := maps.Clone(old)
	over[replaced+"/current"] = "drwxr-xr-x "
	over[replaced+"/current/index"] = plain("old")
	paths := []gate.Change{gate.Delete(replaced + "/current/index")} // the path that is edited, and that the next holder requests
	return map[string]scene{"first": {paths, old, after}, "next": {paths, over, after}}
}

// A process killed at any of the ten steps leaves the whole old directory or the whole new one,
// and no draft.
//
// shows: DL-46 DL-47 DL-48 DL-49 SW-38 GP-31
func TestReplaceDirKilledAtEveryStep(t *testing.T) {
	for name, s := range replacements() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			round := func(t *testing.T, variant int, at errand) (died bool) {
				p, w := newPlace(t, "SQLite", nil)
				plantScan(t, p.Root, s.old)
				a := &aftermath{t: t, place: p, scene: s, grant: w.holdDir(replaced), aside: replaced + "/tmp"}
				at.Do = "replace"
				died = a.die(at)
				a.meddled(variant%2 == 1, 0)
				a.clearUp(variant%4 < 2)
				w.noDrafts(replaced)
				return died
			}
			for variant, around := range []string{"before", "after", "before", "after"} {
				t.Run(fmt.Sprint(around, " ", variant), func(t *testing.T) {
					if !round(t, variant, errand{Step: -1, Around: around}) {
						t.Error("it was not killed")
					}
				})
			}
			for step, died := 0, true; died; step++ {
				for variant := range 4 {
					if storetest.Torture() > 1 || variant == step%4 {
						t.Run(fmt.Sprint("step ", step, " variant ", variant), func(t *testing.T) {
							died = round(t, variant, errand{Step: step})
						})
					}
				}
			}
		})
	}
}
