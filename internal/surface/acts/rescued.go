package acts

import (
	"context"
	"errors"
	"fmt"
	"path"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/merge"
	"lockkeeper/internal/project"
	"lockkeeper/rescue"
)

// Landing says how a kept change lands.
type Landing struct {
	OntoCurrent bool    `json:"onto_current,omitempty"` // replace the file as it is now
	Resolved    *string `json:"resolved,omitempty"`     // the content that a person merged, in place of the kept one; it may be empty
	Base        string  `json:"base,omitempty"`         // with resolved: what the file must be, as `+"`gate write --base`"+` takes it
}

// LandRescued lands a kept change, and drops it from the rescue shelf. The landing is nil if
// the file had that content. If the file has changed since the content was kept, the change is
// merged into it. It refuses if they conflict, or if nothing says what the change was based on.
func LandRescued(ctx context.Context, a *project.Project, id string, how Landing, by Changer, hold Hold) (e rescue.Entry, l *lockkeeper.Landing, err error) {
	if id, err = a.Shelf().Find(ctx, id); err != nil {
		return e, nil, err
	}
	if e, err = a.Shelf().Get(id); err != nil {
		return e, nil, err
	}
	if err := by.mayLand(ctx, e); err != nil {
		return e, nil, err
	}
	if reason, next := CannotLand(a, e); reason != "" {
		return e, nil, &lockkeeper.InputError{Field: "rescue id", Value: id, Reason: reason, Next: "lockkeeper rescue show " + id + " says where the content is; " + next}
	}
	if err := how.check(e); err != nil {
		return e, nil, err
	}
	locked := e.Path
	if e.Kind == rescue.Whole { // the gate prepares the replacement beside the directory
		parent, _ := lockkeeper.Parent(e.Path)
		locked = parent + "/"
	}
	var onto landing.Onto
	err = hold(ctx, "land rescued "+id, []string{locked}, func(ctx context.Context, grant *lockkeeper.Grant) error {
		if onto, err = how.onto(ctx, a, e, grant.ID); err != nil {
			return err
		}
		l, err = landing.LandRescued(ctx, a, grant, e, onto)
		notHeldByUs(err, grant.ID)
		return err
	})
	if err != nil {
		staysKept(err, e)
	}
	return e, l, err
}

// check refuses an invalid combination, before any lock is acquired.
func (how Landing) check(e rescue.Entry) error {
	bad := func(field, reason, next string) error {
		return &lockkeeper.InputError{Field: field, Value: e.Path, Reason: reason, Next: next}
	}
	switch {
	case how.Resolved == nil && how.Base == "":
		return nil
	case how.OntoCurrent:
		return bad("onto_current", "it excludes resolved content, which names the version that it replaces", "leave one of them out")
	case how.Base == "":
		return bad("base", "resolved content needs the version of the file that it was made from", "lockkeeper rescue show --merged "+e.ID+" names it")
	case how.Resolved == nil:
		return bad("resolved", "the base of resolved content is named, but not the content", "send the merged file, which may be empty")
	case e.Kind == rescue.Uncommitted:
		return bad("resolved", "an uncommitted file is restored as it was, also where the gate does not write other content", ResolveStep(e, lockkeeper.Version{}))
	case e.Kind == rescue.Whole || e.Delete || e.Sum == "":
		return bad("resolved", "the kept change has no content that could be merged", "lockkeeper rescue show "+e.ID)
	case merge.HasMarkers(*how.Resolved):
		return bad("resolved", "it still has the markers of a conflict", "replace each marked part with what should be there")
	}
	return nil
}

// onto returns what lands, and on which version of the file. It is called under the locks on the path.
func (how Landing) onto(ctx context.Context, a *project.Project, e rescue.Entry, grantID string) (onto landing.Onto, err error) {
	if how.Base != "" {
		base, err := landing.ParseBase(a, e.Path, how.Base)
		if err == nil {
			onto.Base, onto.Merged = base, []byte(*how.Resolved)
		}
		return onto, err
	}
	onto.Current = how.OntoCurrent
	if onto.Current || e.Kind == rescue.Whole {
		return onto, nil
	}
	fit, err := FitOf(ctx, a, e)
	switch {
	case err != nil:
		return onto, err
	case fit.State == FitConflict:
		return onto, &lockkeeper.LockViolationError{Check: "base", Path: e.Path, GrantID: grantID, Reason: fit.String()}
	case fit.State == FitLanded:
		onto.Base = &fit.Now
	case fit.merges && fit.Now != e.Base:
		onto.Base, onto.Merged = &fit.Now, []byte(fit.Merged)
	}
	return onto, nil // the gate compares the version
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
	list, err := Chosen{IDs: []string{id}}.Of(ctx, a, nil)
	if err != nil {
		return e, err
	}
	_, err = DropMany(ctx, a, list, by)
	return list[0], err
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
func staysKept(err error, e rescue.Entry) {
	for _, part := range lockkeeper.Parts(err) {
		var v *lockkeeper.LockViolationError
		var input *lockkeeper.InputError
		next := "it stays kept: lockkeeper rescue show " + e.ID
		switch {
		case errors.As(part, &v) && v.Check == "base":
			v.Next = ResolveStep(e, lockkeeper.Version{})
		case errors.As(part, &v):
			v.Next = next
		case errors.As(part, &input) && input.Field == "path":
			input.Next = next
		}
	}
}

// ResolveStep returns the commands that merge a kept change by hand and land the result, without
// losing what others wrote. Without a version the first command names it.
func ResolveStep(e rescue.Entry, now lockkeeper.Version) string {
	if e.Kind == rescue.Uncommitted {
		return "lockkeeper rescue show " + e.ID + ", then lockkeeper rescue land --onto-current " + e.ID + ", which keeps what it replaces"
	}
	if e.Delete || e.Sum == "" || e.Kind == rescue.Whole {
		return "lockkeeper rescue show " + e.ID + ", and make the change by hand"
	}
	file := shellword.Quote(path.Base(e.Path) + ".merged")
	show := "lockkeeper rescue show --merged " + e.ID + " >" + file
	if !now.Exists() {
		return show + ", which says how to land it"
	}
	return show + ", edit " + file + ", then lockkeeper rescue land --resolved " + file + fmt.Sprintf(" --base %x ", now.Sum) + e.ID
}
