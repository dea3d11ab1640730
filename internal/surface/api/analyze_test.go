package api

import (
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/surface/view"
)

// The routes that start an analysis queue it with its locks. With run.locking off there is no queue, and
// the analysis starts at once.
//
// shows: SW-70
func TestAnalyzeQueues(t *testing.T) {
	for locking, queued := range map[string]bool{"on": true, "off": false} {
		t.Run("locking "+locking, func(t *testing.T) {
			u := newTour(t)
			u.App.Config.Run.Locking = locking
			documents, _, _, err := conduct.OpenDocuments(u.App, flow.Controllers().Name)
			must(t, err)
			for unit, route := range map[string]string{
				"blog/comments": "/analyze/", "accounts/sessions": "/pipeline/analyze/", "accounts/registrations": "/api/v1/pipeline/analyze/",
			} {
				u.ask("POST", route+unit, nil).has(unit, `"phase":"analyze"`)
				if now := u.idle(); now.Error != "" {
					t.Fatalf("%s: %+v", route, now)
				}
				if at, err := documents.Unit(u.t.Context(), unit); err != nil || at.Analysis == nil {
					t.Errorf("%s: it is not analyzed: %v", route, err)
				}
				var items view.Items
				u.ask("GET", "/api/v1/items?status=completed", nil).into(&items)
				found := 0
				for _, it := range items.Items {
					if it.Workflow == unit && it.Phase == "analyze" {
						found++
						if len(it.Locks) == 0 {
							t.Errorf("%s: the item has no locks: %+v", route, it)
						}
					}
				}
				if (found == 1) != queued || found > 1 {
					t.Errorf("%s: %d items, want one: %v", route, found, queued)
				}
			}
		})
	}
}
