package run

import (
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// isCurrent reports whether an item is for the current phase, topic or plan of its unit. An item
// of an earlier plan, or of a phase that was redone, is not current.
func isCurrent(u *progress.Unit, it *lockkeeper.Item, d workItem) bool {
	switch d.kind {
	case string(flow.BatchUnit):
		b, known := u.Batch(d.part)
		return known && b.Next != "" && strings.Contains(it.Key, "@"+b.Digest[:8])
	case topicUnit:
		for _, topic := range u.Topics {
			if topic.Slug == d.part {
				return topic.State == progress.Pending
			}
		}
		return false
	case string(flow.Screen):
		return u.Plan == nil
	}
	what, _, _ := strings.Cut(it.Key[strings.LastIndex(it.Key, "/")+1:], "#")
	return what == u.Phase()
}
