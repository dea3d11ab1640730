package deferred

import (
	"testing"

	"lockkeeper/internal/apptest"
)

// A patch waits for nothing that agents never write.
func TestDeferredKeepsProtected(t *testing.T) {
	place := apptest.Empty(t, apptest.ProtectedConfig)
	q := Open(place.Open(t))
	apptest.StayProtected(t, place, func(t *testing.T, path string) bool {
		_, err := q.Put(t.Context(), Patch{Path: path, By: "heron", Session: "B"}, []byte("--- /dev/null\n+++ b/"+path+"\n@@ -0,0 +1 @@\n+new\n"), false)
		if err != nil {
			return false
		}
		ended, err := q.Land(t.Context())
		apptest.Must(t, err)
		return len(ended) == 1 && ended[0].State == Landed
	})
}
