package lfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/lock"
)

const policy = "person"

// Metadata keys of git-lfs grants.
const (
	keyReason = "reason"
	keyRef    = "ref"
	reason    = "git lfs lock"
)

// A Lock is a lock in the format of git-lfs.
type Lock struct {
	ID       string    `json:"id"`
	Path     string    `json:"path"`
	LockedAt time.Time `json:"locked_at"`
	Owner    Owner     `json:"owner"`
}

// An Owner is the holder of a lock.
type Owner struct {
	Name string `json:"name"`
}

// A Ref is a branch. A lock holds for all branches, because they share one tree.
type Ref struct {
	Name string `json:"name"`
}

// ours reports whether a grant is a git-lfs lock of the caller.
func ours(e *lock.RequestInfo, who access.Person) bool {
	return e.Holder == who.Name && e.Policy == policy && e.Metadata[keyReason] == reason
}

// lock acquires a file for a person.
func (api *API) lock(r *request) (int, any, error) {
	var in struct {
		Path string `json:"path"`
		Ref  *Ref   `json:"ref"`
	}
	if err := r.into(&in); err != nil {
		return 0, nil, err
	}
	l, err := api.target(in.Path)
	if err == nil {
		err = acts.CheckName(api.app, in.Path)
	}
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

// target returns the lock for a path relative to the root.
func (api *API) target(path string) (lockkeeper.Lock, error) {
	if strings.HasPrefix(path, "/") {
		return lockkeeper.Lock{}, &lockkeeper.InputError{Field: "path", Value: path, Reason: "must be relative to the root of the repository", Next: "name a file inside it"}
	}
	l, err := api.app.Root.Resolve(api.app.Root.Dir(), path, lockkeeper.Write)
	switch {
	case err != nil:
		return l, err
	case l.Kind == lockkeeper.Dir:
		return l, &lockkeeper.InputError{Field: "path", Value: path, Reason: "is a directory; git-lfs locks files", Next: "name the files in it"}
	case l.Path == lockkeeper.GitTarget:
		return l, &lockkeeper.InputError{Field: "path", Value: path, Reason: "belongs to git", Next: "name a file of the work tree"}
	}
	return l, nil
}

// taken returns the conflict response: who holds the file, or waits for it.
func (api *API) taken(ctx context.Context, path string, c lockkeeper.ConflictInfo) (int, any, error) {
	verb := "held"
	if c.Kind == lockkeeper.Waiting {
		verb = "awaited"
	}
	text := fmt.Sprintf("%s is %s by %s since %s", path, verb, c.Holder, c.AcquiredAt.UTC().Format("2006-01-02 15:04:05Z"))
	there := Lock{ID: c.GrantID, Path: path, LockedAt: c.AcquiredAt.UTC(), Owner: Owner{c.Holder}}
	e, err := api.app.Locks.Request(ctx, c.GrantID)
	if err != nil {
		return 0, nil, err
	}
	if e != nil { // nil if the lock was released just now
		if why := e.Metadata[keyReason]; why != "" {
			text += fmt.Sprintf(", for %q", why)
		}
		for _, l := range locksOf(e) {
			if l.Path == path {
				there = l.Lock
			}
		}
	}
	return http.StatusConflict, map[string]any{"message": lockkeeper.JoinNext(text, "lockkeeper why "+path), "lock": there}, nil
}

// unlock releases a lock, or with force one of another owner.
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
		err = &refused{http.StatusForbidden, fmt.Sprintf("%s is locked by %s", held.Path, held.Owner.Name), "ask them, or an admin who can use --force"}
	}
	return http.StatusOK, map[string]any{"lock": held.Lock}, err
}

func (api *API) force(r *request, held *heldLock) error {
	id := held.entry.ID
	switch {
	case r.who.Role == access.Agent: // the engine refuses the request and records the attempt
	case r.who.Role != access.Admin:
		return &refused{http.StatusForbidden, fmt.Sprintf("--force needs the role admin, and %s has %s", r.who.Name, r.who.Role), "ask " + held.Owner.Name + ", or an admin"}
	case len(held.entry.Targets) > 1:
		return &refused{http.StatusConflict, fmt.Sprintf("%s is one of %d files that %s holds under one grant", held.Path, len(held.entry.Targets), held.Owner.Name), "lockkeeper lock force-release " + id + ", which releases all of them"}
	}
	return acts.ForceRelease(r.Context(), api.app, held.entry, held.Owner.Name, "git lfs unlock --force of "+held.Path, r.who.Actor())
}

// A heldLock is a file that is held for writing.
type heldLock struct {
	Lock
	entry *lock.RequestInfo
}

// Limits on the number of locks in a response.
const (
	usualPage   = 100
	largestPage = 1_000
)

// all lists the files that are held for writing, oldest first. It leaves out expired grants,
// which the next request frees.
func (api *API) all(ctx context.Context) (list []heldLock, err error) {
	entries, err := api.app.Locks.Requests(ctx)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if e := &entries[i]; !e.Free {
			list = append(list, locksOf(e)...)
		}
	}
	slices.SortFunc(list, func(a, b heldLock) int { return cmp.Compare(a.place(), b.place()) })
	return list, nil
}

// place returns the sort key of a lock, which does not depend on other locks.
func (l *heldLock) place() string {
	return l.LockedAt.Format("20060102T150405.000000000") + "-" + l.ID
}

// locksOf returns the files that a grant holds for writing. If there are several, each has
// its own id.
func locksOf(e *lock.RequestInfo) (list []heldLock) {
	if e.State == string(lockkeeper.Waiting) {
		return nil
	}
	for i, l := range e.Targets {
		if l.Mode != lockkeeper.Write || l.Kind != lockkeeper.File || l.Path == lockkeeper.GitTarget {
			continue
		}
		id := e.ID
		if len(e.Targets) > 1 {
			id += "." + strconv.Itoa(i)
		}
		list = append(list, heldLock{Lock{ID: id, Path: l.Path, LockedAt: e.AcquiredAt.UTC(), Owner: Owner{e.Holder}}, e})
	}
	return list
}

func (api *API) held(ctx context.Context, id string) (*heldLock, error) {
	gone := &refused{http.StatusNotFound, "unknown lock " + strconv.Quote(id), "git lfs locks"}
	grant, _, _ := strings.Cut(id, ".")
	if project.CheckGrantID(grant) != nil {
		return nil, gone
	}
	e, err := api.app.Locks.Request(ctx, grant)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, gone
	}
	for _, l := range locksOf(e) {
		if l.ID == id {
			return &l, nil
		}
	}
	return nil, gone
}

// page returns a part of a list, and the cursor of the next part.
func page(list []heldLock, cursor string, limit int) (part []heldLock, next string) {
	if limit <= 0 {
		limit = usualPage
	}
	limit = min(limit, largestPage)
	at, found := slices.BinarySearchFunc(list, cursor, func(l heldLock, after string) int { return cmp.Compare(l.place(), after) })
	if found {
		at++
	}
	part = list[at:min(len(list), at+limit)]
	if at+limit < len(list) {
		next = part[len(part)-1].place()
	}
	return part, next
}

// A listQuery is the query of git lfs locks. A lock holds for every branch, so the branch
// is ignored.
type listQuery struct {
	Path    string `json:"path"`
	ID      string `json:"id"`
	Cursor  string `json:"cursor"`
	Limit   int    `json:"limit"`
	Refspec string `json:"refspec"`
}

func (api *API) list(r *request) (int, any, error) {
	q := r.URL.Query()
	limit := 0
	if text := q.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			return 0, nil, &refused{status: http.StatusUnprocessableEntity, reason: "limit must be a number: " + strconv.Quote(text)}
		}
	}
	all, err := api.all(r.Context())
	if err != nil {
		return 0, nil, err
	}
	if path, id := q.Get("path"), q.Get("id"); path != "" || id != "" {
		if l, err := api.target(path); err == nil { // an invalid path is compared as the client gave it, and matches nothing
			path = l.Path
		}
		all = slices.DeleteFunc(all, func(l heldLock) bool { return path != "" && l.Path != path || id != "" && l.ID != id })
	}
	part, next := page(all, q.Get("cursor"), limit)
	return http.StatusOK, answerOf(map[string][]heldLock{"locks": part}, next), nil
}

// verify serves git push: it separates the caller's locks from those of others.
func (api *API) verify(r *request) (int, any, error) {
	var in struct {
		Cursor string `json:"cursor"`
		Limit  int    `json:"limit"`
		Ref    *Ref   `json:"ref"`
	}
	if err := r.into(&in); err != nil {
		return 0, nil, err
	}
	all, err := api.all(r.Context())
	if err != nil {
		return 0, nil, err
	}
	part, next := page(all, in.Cursor, in.Limit)
	lists := map[string][]heldLock{"ours": nil, "theirs": nil}
	for _, l := range part {
		whose := "theirs"
		if l.entry.Holder == r.who.Name && l.entry.Policy != session.Policy { // an agent's callsign can equal a person's name
			whose = "ours"
		}
		lists[whose] = append(lists[whose], l)
	}
	return http.StatusOK, answerOf(lists, next), nil
}

func answerOf(lists map[string][]heldLock, next string) map[string]any {
	out := map[string]any{}
	for name, list := range lists {
		locks := []Lock{}
		for _, l := range list {
			locks = append(locks, l.Lock)
		}
		out[name] = locks
	}
	if next != "" {
		out["next_cursor"] = next
	}
	return out
}
