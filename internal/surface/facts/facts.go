package facts

import (
	"errors"
	"maps"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/flow/progress"
)

// Of returns the facts that an error carries in addition to its code and message, under their JSON
// names.
func Of(err error) map[string]any {
	out := map[string]any{}
	var (
		blocked   *lockkeeper.BlockedError
		timeout   *lockkeeper.LockTimeoutError
		over      *lockkeeper.OverLockError
		violation *lockkeeper.LockViolationError
		notHeld   *lockkeeper.NotHeldError
		input     *lockkeeper.InputError
		refused   *lockkeeper.RefusedError
		store     *lockkeeper.StoreError
		stale     *progress.StaleError
		unclear   *resource.UnclearError
	)
	switch {
	case errors.As(err, &blocked):
		out["holder"], out["conflicts"], out["truncated"] = blocked.Holder, append([]lockkeeper.ConflictInfo{}, blocked.Conflicts...), blocked.Truncated
	case errors.As(err, &timeout):
		out["holder"], out["conflicts"] = timeout.Holder, append([]lockkeeper.ConflictInfo{}, timeout.Conflicts...)
		out["waited_seconds"], out["attempts"] = timeout.Waited.Seconds(), timeout.Attempts
	case errors.As(err, &over):
		out["holder"], out["path"], out["policy"] = over.Holder, over.Path, over.Policy
	case errors.As(err, &violation):
		maps.Copy(out, violationFacts(violation))
		list := []map[string]any{}
		for _, part := range lockkeeper.Parts(err) {
			if v := (*lockkeeper.LockViolationError)(nil); errors.As(part, &v) {
				list = append(list, violationFacts(v))
			}
		}
		out["violations"] = list
	case errors.As(err, &notHeld):
		out["grant_id"], out["reason"], out["next"] = notHeld.GrantID, notHeld.Reason, notHeld.Next
	case errors.As(err, &input):
		out["field"], out["value"], out["reason"], out["next"] = input.Field, input.Value, input.Reason, input.Next
	case errors.As(err, &refused):
		out["act"], out["reason"], out["next"] = refused.Act, refused.Reason, refused.Next
		if len(refused.Conditions) > 0 {
			out["conditions"] = refused.Conditions
		}
	case errors.As(err, &unclear):
		out["operation"], out["unclear"], out["next"] = unclear.Operation, unclear.Unclear, unclear.Next
	case errors.As(err, &store):
		out["store"], out["reason"], out["next"] = store.Store, store.Reason, store.Next
	case errors.As(err, &stale):
		out["ref"], out["seen"], out["now"], out["changed"], out["became"] = stale.Ref, stale.Seen, stale.Now, stale.Changed, stale.Became
	}
	return out
}

func violationFacts(v *lockkeeper.LockViolationError) map[string]any {
	return map[string]any{"check": v.Check, "path": v.Path, "grant_id": v.GrantID, "held_by": v.HeldBy, "reason": v.Reason, "next": v.Next}
}
