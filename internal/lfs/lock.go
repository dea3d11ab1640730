package lfs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/access"
	"lockkeeper/internal/acts"
	"lockkeeper/lock"
)

// policy is that of the locks of git-lfs.
const policy = "person"

// Keys of what a grant of git-lfs says of itself.
const (
	keyReason = "reason"
	keyRef    = "ref"
	reason    = "git lfs lock"
)

// Lock is a lock as git-lfs has it.
type Lock struct {
	ID       string    `json:"id"`
	Path     string    `json:"path"`
	LockedAt time.Time `json:"locked_at"`
	Owner    Owner     `json:"owner"`
}

// Owner is who has a lock.
type Owner struct {
	Name string `json:"name"`
}

// Ref is a branch. A lock holds for all of them: they share one tree.
type Ref struct {
	Name string `json:"name"`
}

// ours reports whether somebody has a grant of git-lfs.
func ours(e *lock.Entry, who access.Person) bool {
	return e.Holder == who.Name && e.Policy == policy && e.Metadata[keyReason] == reason
}

// lock locks a file for a person.
func (api *API) lock(r *request) (int, any, error) {
	var in struct {
		Path string `json:"path"`
		Ref  *Ref   `json:"ref"`
	}
	if err := r.into(&in); err != nil {
		return 0, nil, err
	}
	l, err := api.target(in.Path)
	if err != nil {
		return 0, nil, err
	}
	facts := map[string]string{keyReason: reason}
	if in.Ref != nil && in.Ref.Name != "" {
		facts[keyRef] = in.Ref.Name
	}
	g, err := api.app.Acquire(r.Context(), lockkeeper.Request{Holder: r.who.Name, Policy: policy, Locks: []lockkeeper.Lock{l}, Metadata: facts}, 0)
	var blocked *lockkeeper.BlockedError
	switch {
	case errors.As(err, &blocked) && len(blocked.Conflicts) > 0:
		return api.taken(r.Context(), l.Path, blocked.Conflicts[0])
	case err != nil:
		return 0, nil, err
	}
	return http.StatusCreated, map[string]any{"lock": Lock{ID: g.ID, Path: l.Path, LockedAt: g.AcquiredAt.UTC(), Owner: Owner{r.who.Name}}}, nil
}

// target is the lock on a file that git-lfs names, from the root.
func (api *API) target(path string) (lockkeeper.Lock, error) {
	if strings.HasPrefix(path, "/") {
		return lockkeeper.Lock{}, &lockkeeper.InputError{Field: "path", Value: path, Reason: "not a path from the root of the repository", Next: "lock a file that is in it"}
	}
	l, err := api.app.Root.Resolve(api.app.Root.Dir(), path, lockkeeper.Write)
	switch {
	case err != nil:
		return l, err
	case l.Kind == lockkeeper.Dir:
		return l, &lockkeeper.InputError{Field: "path", Value: path, Reason: "a directory, and git-lfs locks files", Next: "name the files in it"}
	case l.Path == lockkeeper.GitTarget:
		return l, &lockkeeper.InputError{Field: "path", Value: path, Reason: "git's own", Next: "lock a file that git keeps"}
	}
	return l, nil
}

// taken says who has a file, or came earlier.
func (api *API) taken(ctx context.Context, path string, c lockkeeper.ConflictInfo) (int, any, error) {
	verb := "held"
	if c.Kind == lockkeeper.Waiting {
		verb = "awaited"
	}
	text := fmt.Sprintf("%s is %s by %s since %s", path, verb, c.Holder, c.AcquiredAt.UTC().Format("2006-01-02 15:04:05Z"))
	there := Lock{ID: c.GrantID, Path: path, LockedAt: c.AcquiredAt.UTC(), Owner: Owner{c.Holder}}
	e, err := api.app.Locks.Entry(ctx, c.GrantID)
	if err != nil {
		return 0, nil, err
	}
	if e != nil { // else it left just now
		if why := e.Metadata[keyReason]; why != "" {
			text += fmt.Sprintf(", for %q", why)
		}
		for _, l := range locksOf(e) {
			if l.Path == path {
				there = l.Lock
			}
		}
	}
	return http.StatusConflict, map[string]any{"message": text + "; next: lockkeeper why " + path, "lock": there}, nil
}

// unlock gives a lock back, or takes it away.
func (api *API) unlock(r *request) (int, any, error) {
	var in struct {
		Force bool `json:"force"`
		Ref   *Ref `json:"ref"`
	}
	if err := r.into(&in); err != nil {
		return 0, nil, err
	}
	held, err := api.held(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	switch {
	case ours(held.entry, r.who):
		_, err = api.app.Release(r.Context(), held.entry.ID)
	case in.Force:
		err = api.force(r, held)
	default:
		err = &refused{http.StatusForbidden, fmt.Sprintf("%s is locked by %s, and not by you; next: ask them, or somebody who may use --force", held.Path, held.Owner.Name)}
	}
	return http.StatusOK, map[string]any{"lock": held.Lock}, err
}

// force takes a lock away from its owner.
func (api *API) force(r *request, held *heldLock) error {
	id := held.entry.ID
	switch {
	case r.who.Role == access.Agent: // the engine refuses, and records that it was tried
	case r.who.Role != access.Admin:
		return &refused{http.StatusForbidden, fmt.Sprintf("%s has the role %s, and taking a lock away needs admin; next: ask %s, or an admin", r.who.Name, r.who.Role, held.Owner.Name)}
	case len(held.entry.Targets) > 1:
		return &refused{http.StatusConflict, fmt.Sprintf("%s is one of %d files that %s works on, under one grant; next: lockkeeper lock force-release %s, which takes all of them", held.Path, len(held.entry.Targets), held.Owner.Name, id)}
	}
	return acts.ForceRelease(r.Context(), api.app, held.entry, held.Owner.Name, "git lfs unlock --force of "+held.Path, r.who.Actor())
}
