package pipeline

import (
	"strings"

	"lockkeeper"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
)

// isCurrent reports whether an item is about what its unit waits for now. One that failed
// and was overtaken, by another plan, by a phase that was done anew, is history.
func isCurrent(u *dossier.Unit, it *lockkeeper.Item, d due) bool {
	switch d.kind {
	case string(flow.BatchUnit):
		b, known := u.Batch(d.batch)
		return known && b.Next != "" && strings.Contains(it.Key, "@"+b.Digest[:8])
	case topicUnit:
		for _, topic := range u.Topics {
			if topic.Slug == d.batch {
				return topic.State == dossier.Pending
			}
		}
		return false
	case string(flow.Screen):
		return u.Plan == nil
	}
	what, _, _ := strings.Cut(it.Key[strings.LastIndex(it.Key, "/")+1:], "#")
	return what == u.Phase()
}
