package lfs

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/lock"
)

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

// held returns a lock by its id.
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

// list serves git lfs locks.
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
		if l, err := api.target(path); err == nil { // an invalid path is compared as it is, and matches nothing
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

// answerOf converts locks to the format of git-lfs.
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
