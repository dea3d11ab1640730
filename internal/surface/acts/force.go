package acts

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/lock"
)

// ForceRelease releases a grant against its holder, whom the person must name. Processes
// under the grant are stopped.
func ForceRelease(ctx context.Context, a *project.Project, e *lock.RequestInfo, holder, reason string, by lockkeeper.Actor) error {
	if err := needReason(reason); err != nil {
		return err
	}
	if holder != e.Holder {
		return &lockkeeper.RefusedError{Act: "force-release", Reason: "the grant is held by " + e.Holder + ", not by " + holder, Next: "reload it and check who holds it"}
	}
	if err := a.Locks.ForceRelease(ctx, e.ID, by, reason); err != nil {
		return err
	}
	return session.Open(a).RestoreModes(ctx)
}

// Unreached says where the work under a grant of another machine may continue after its force-release, and until
// when; "" if the work can be stopped from here, or there is none.
func Unreached(a *project.Project, e *lock.RequestInfo) string {
	if e.Process == nil || a.Host.Liveness(*e.Process) != lockkeeper.ProcessUnknown {
		return ""
	}
	host, _, _ := strings.Cut(e.Process.Host, "/")
	text := fmt.Sprintf("its work runs on %s and cannot be seen from here: it is stopped there once that machine learns of the release", host)
	if e.ExpiresAt != nil {
		text += ", at the latest at " + e.ExpiresAt.Local().Format("2006-01-02 15:04:05 -0700")
	}
	return text
}

func needReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return &lockkeeper.InputError{Field: "reason", Reason: "required", Next: "say why, for the record"}
	}
	return nil
}

// Cleared is the result of releasing many grants.
type Cleared struct {
	Freed []string // ids of the released grants
	Kept  []KeptGrant
}

// KeptGrant is a grant that could not be released.
type KeptGrant struct {
	ID     string
	Holder string
	Err    error // why the grant could not be released
}

// Clear releases the grants that a person was shown. A grant whose policy needs proof that
// it is abandoned stays, and does not block the others.
func Clear(ctx context.Context, a *project.Project, grants []lockkeeper.GrantSnapshot, reason string, by lockkeeper.Actor) (c Cleared) {
	for _, g := range grants {
		if err := a.Locks.ForceRelease(ctx, g.ID, by, reason); err != nil {
			c.Kept = append(c.Kept, KeptGrant{g.ID, g.Holder, err})
			continue
		}
		c.Freed = append(c.Freed, g.ID)
	}
	session.Open(a).RestoreModes(ctx) // if it fails, the next `lockkeeper status` restores the modes
	return c
}

// ClearShown releases every grant, for a person who saw them at an event number. If a
// grant was acquired since, it releases nothing.
func ClearShown(ctx context.Context, a *project.Project, seq uint64, reason string, by lockkeeper.Actor) (Cleared, error) {
	if err := needReason(reason); err != nil {
		return Cleared{}, err
	}
	grants, err := a.Locks.ActiveGrants(ctx)
	if err != nil {
		return Cleared{}, err
	}
	for _, g := range grants {
		if g.Fence > seq {
			return Cleared{}, &lockkeeper.RefusedError{Act: "clear", Reason: fmt.Sprintf("%s acquired a lock since the list was shown, so no lock was released", g.Holder), Next: "reload the list of locks"}
		}
	}
	return Clear(ctx, a, grants, reason, by), nil
}
