package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/sched"
)

// address returns the address of a page with a query. It leaves out empty values.
func address(path string, query map[string]string) string {
	q := url.Values{}
	for name, value := range query {
		if value != "" {
			q.Set(name, value)
		}
	}
	return strings.TrimSuffix(path+"?"+strings.ReplaceAll(q.Encode(), "%2F", "/"), "?") // a query may contain slashes
}

// named returns the address of what has a name, with its slashes: /unit/admin/users. A name that a
// browser would change in a path is in the query.
func named(path, name string, query map[string]string) string {
	parts := strings.Split(name, "/")
	if slices.ContainsFunc(parts, func(p string) bool { return p == "" || p == "." || p == ".." }) {
		q := map[string]string{"name": name}
		for key, value := range query {
			q[key] = value
		}
		return address(path, q)
	}
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return address(path+strings.Join(parts, "/"), query)
}

// nameIn returns the name in the address of a request, see named.
func nameIn(r *http.Request) string {
	return cmp.Or(r.PathValue("name"), r.URL.Query().Get("name"))
}

// toUnit returns the address of a unit. The flow is in it only if it is not the current one.
func (d *Dashboard) toUnit(name string, flowName ...string) string {
	return named("/unit/", name, d.flowQuery(flowName))
}

// flowQuery returns the query for a flow, which is empty for the current one.
func (d *Dashboard) flowQuery(flowName []string) map[string]string {
	if len(flowName) == 0 || flowName[0] == d.view.CurrentFlow() {
		return nil
	}
	return map[string]string{"flow": flowName[0]}
}

// toBatch returns the address of a batch on the page of its unit.
func (d *Dashboard) toBatch(unit, batch string, flowName ...string) string {
	return d.toUnit(unit, flowName...) + "#batch-" + url.PathEscape(batch)
}

// toDiff returns the address of the diff of a batch.
func (d *Dashboard) toDiff(unit, batch string, flowName ...string) string {
	return named("/diff/", unit+"/"+batch, d.flowQuery(flowName))
}

// toItem returns the address of an item of the queue. If another item has its name and is newer, the
// address has the id.
func (d *Dashboard) toItem(id, name string) string {
	return named("/item/", name, d.itemQuery(id, name))
}

// toLog returns the address of the log of an item, or of one of its calls.
func (d *Dashboard) toLog(id, name string, call ...int) string {
	q := d.itemQuery(id, name)
	for _, n := range call {
		q["n"] = strconv.Itoa(n)
	}
	return named("/log/", name, q)
}

// toCall returns the address of a call of an item.
func (d *Dashboard) toCall(id, name string, number int) string {
	q := d.itemQuery(id, name)
	q["n"] = strconv.Itoa(number)
	return named("/call/", name, q)
}

// itemName returns the name of an item for people.
func (d *Dashboard) itemName(id string) string { return cmp.Or(d.view.NameOfItem(id), id) }

func (d *Dashboard) itemQuery(id, name string) map[string]string {
	if name == "" || d.view.NewestItem(name) != id {
		return map[string]string{"id": id}
	}
	return map[string]string{}
}

// toLanding returns the address of a landing.
func toLanding(seq uint64) string { return "/landing/" + strconv.FormatUint(seq, 10) }

// toDecision returns the address of a decision.
func toDecision(ref progress.Ref) string { return filter{}.At(ref) }

// toFirst returns the address of the first of the open decisions of a kind.
func toFirst(kind progress.Kind, first progress.Ref) string {
	return filter{Kind: string(kind)}.At(first)
}

// toDecisions returns the address of the open decisions of a unit, of one kind or of all.
func toDecisions(unit string, kind ...string) string {
	return filter{Unit: unit, Kind: strings.Join(kind, "")}.url("")
}

// itemIn returns the name or id of the item in the address of a request.
func (d *Dashboard) itemIn(r *http.Request) string {
	if id := r.URL.Query().Get("id"); id != "" {
		return id
	}
	name := nameIn(r)
	if sched.IsItemID(name) {
		return name
	}
	return cmp.Or(d.view.NewestItem(name), name)
}

// readable redirects a request for an item by its id or its key to the address with its name.
func (d *Dashboard) readable(r *http.Request, id, key, name string, to func() string) error {
	if asked := nameIn(r); asked != "" && asked != name && (asked == id || asked == key) {
		return &movedError{to()}
	}
	return nil
}

// A movedError says that a page has another address.
type movedError struct{ to string }

func (e *movedError) Error() string { return "this page is at " + e.to }

// moved redirects the addresses that calls and logs of items had: /item/ID/log, /item/ID/call/NUMBER. All
// others below /item/ are names.
func (d *Dashboard) moved(r *http.Request) error {
	id, rest, _ := strings.Cut(r.PathValue("name"), "/")
	if !sched.IsItemID(id) {
		return nil
	}
	name := d.view.NameOfItem(id)
	if n, ok := strings.CutPrefix(rest, "call/"); ok {
		number, err := strconv.Atoi(n)
		if err != nil {
			return nil
		}
		return &movedError{d.toCall(id, name, number)}
	}
	if rest == "log" {
		return &movedError{d.toLog(id, name)}
	}
	return nil
}
