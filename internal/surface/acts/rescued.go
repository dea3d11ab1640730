package acts

import (
	"context"
	"errors"
	"fmt"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/project"
	"lockkeeper/rescue"
)

// LandRescued lands a kept change, and drops it from the rescue shelf. The landing is nil if
// the file had that content. Without ontoCurrent it refuses if the file has changed since
// the content was kept.
func LandRescued(ctx context.Context, a *project.Project, id string, ontoCurrent bool, by Changer, hold Hold) (e rescue.Entry, l *lockkeeper.Landing, err error) {
	if id, err = a.Shelf().Find(ctx, id); err != nil {
		return e, nil, err
	}
	if e, err = a.Shelf().Get(id); err != nil {
		return e, nil, err
	}
	if e.Kind == rescue.Unlanded { // the work of a batch, about which people decide
		by.Wrote = nil
	}
	if err := by.mayChange(ctx, "landing of rescued "+id, e.GrantID, e.Holder, e.At); err != nil {
		return e, nil, err
	}
	if reason, next := CannotLand(a, e); reason != "" {
		return e, nil, &lockkeeper.InputError{Field: "rescue id", Value: id, Reason: reason, Next: "lockkeeper rescue show " + id + " says where the content is; " + next}
	}
	locked := e.Path
	if e.Kind == rescue.Whole { // the gate prepares the replacement beside the directory
		parent, _ := lockkeeper.Parent(e.Path)
		locked = parent + "/"
	}
	err = hold(ctx, "land rescued "+id, []string{locked}, func(ctx context.Context, grant *lockkeeper.Grant) error {
		l, err = landing.LandRescued(ctx, a, grant, e, ontoCurrent)
		notHeldByUs(err, grant.ID)
		return err
	})
	if err != nil {
		staysKept(err, id)
	}
	return e, l, err
}

// CannotLand returns why a kept change cannot land, and what to do instead. The reason is
// empty if it can.
func CannotLand(a *project.Project, e rescue.Entry) (reason, next string) {
	switch e.Kind {
	case rescue.Damaged:
		return "it is damaged: " + e.Reason, "copy what you need from " + a.Shelf().ContentPath(e.ID)
	case rescue.Noted:
		return "its content was too large to keep", "to keep such files, raise gate.keep_file_mb or gate.keep_total_mb"
	case rescue.Archive:
		return "it is an archive of many files, and the gate lands single files", ListArchive(a, e)
	case rescue.Whole:
		if dir, err := gate.KeptDir(a.Root.Dir(), a.Shelf(), e); err != nil || dir == "" {
			return "it is a special file that was moved aside, or is gone", "move it back by hand, under a lock on " + e.Path
		}
	}
	return "", ""
}

func ListArchive(a *project.Project, e rescue.Entry) string {
	return "tar -tzf " + a.Shelf().ContentPath(e.ID)
}

// DropRescued deletes a kept change. It records the actor first.
func DropRescued(ctx context.Context, a *project.Project, id string, by lockkeeper.Actor) (e rescue.Entry, err error) {
	if id, err = a.Shelf().Find(ctx, id); err != nil {
		return e, err
	}
	if e, err = a.Shelf().Get(id); err != nil {
		return e, err
	}
	if err := conduct.RecordDecision(ctx, a, by, fmt.Sprintf("rescued change %s of %s is dropped", id, e.Path)); err != nil {
		return e, err
	}
	return e, a.Shelf().Drop(id)
}

// notHeldByUs removes the caller's own grant from the conflicts of a refusal.
func notHeldByUs(err error, grant string) {
	for _, part := range lockkeeper.Parts(err) {
		var v *lockkeeper.LockViolationError
		if errors.As(part, &v) && v.HeldBy != nil && v.HeldBy.GrantID == grant {
			v.HeldBy = nil
		}
	}
}

// staysKept adds to a refusal that the change is still kept.
func staysKept(err error, id string) {
	for _, part := range lockkeeper.Parts(err) {
		var v *lockkeeper.LockViolationError
		var input *lockkeeper.InputError
		next := "it stays kept: lockkeeper rescue show " + id
		switch {
		case errors.As(part, &v) && v.Check == "base":
			v.Next = "lockkeeper rescue show " + id + ", then lockkeeper rescue land --onto-current " + id
		case errors.As(part, &v):
			v.Next = next
		case errors.As(part, &input) && input.Field == "path":
			input.Next = next
		}
	}
}
