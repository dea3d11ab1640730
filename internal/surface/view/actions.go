package view

import (
	"lockkeeper"
	"lockkeeper/internal/flow/run"
)

// itemActs are what a person can do about an item.
func itemActs(it *lockkeeper.Item) []Act {
	retry := Act{Name: "retry", Target: it.ID, Command: "lockkeeper job retry " + it.ID, Was: string(it.Status), Note: run.FlowOf(it) != ""}
	cancel := Act{Name: "cancel", Target: it.ID, Command: "lockkeeper job cancel " + it.ID, Was: string(it.Status), Note: true}
	switch {
	case it.Status == lockkeeper.ItemError:
		cancel.Refused = "it has failed, and nothing of it runs"
	case it.Status == lockkeeper.ItemCompleted:
		retry.Refused, cancel.Refused = "it is completed", "it is completed"
	default:
		retry.Refused = "it has not failed"
		if it.Failure != nil {
			cancel.Refused = it.Failure.Reason
		}
	}
	return []Act{retry, cancel}
}
