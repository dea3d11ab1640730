package deferred

import (
	"testing"

	"lockkeeper/internal/project/projecttest"
)

// Put refuses patches of protected files.
func TestDeferredKeepsProtected(t *testing.T) {
	place := projecttest.Empty(t, projecttest.ProtectedConfig)
	q := Open(place.Open(t))
	projecttest.StayProtected(t, place, func(t *testing.T, path string) bool {
		_, err := q.Put(t.Context(), Patch{Path: path, By: "heron", Session: "B"}, []byte("--- /dev/null\n+++ b/"+path+"\n@@ -0,0 +1 @@\n+new\n"), false)
		if err != nil {
			return false
		}
		ended, err := q.Land(t.Context())
		projecttest.Must(t, err)
		return len(ended) == 1 && ended[0].State == Landed
	})
}
