package run

import (
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// isCurrent reports whether an item is about what its unit waits for now. One that failed
// and was overtaken, by another plan, by a phase that was done again, is history.
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
