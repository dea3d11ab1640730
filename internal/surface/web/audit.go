package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/view"
)

type auditData struct {
	*view.Audit
	Who, Path, Kind, Text string
	Since, Until          string
	Internal              bool
	Older                 string // URL of the next page
	Newest                string // URL of the first page; empty: this page is the first
}

// linesOfAudit is how many events a page shows. Each has all its facts.
const linesOfAudit = 60

func (d *Dashboard) auditPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	data := auditData{Who: strings.TrimSpace(q.Get("who")), Path: strings.TrimSpace(q.Get("path")), Kind: q.Get("kind"), Text: strings.TrimSpace(q.Get("q")), Since: q.Get("since"), Until: q.Get("until"), Internal: q.Get("internal") != ""}
	before, err := pageNumber(q.Get("before"))
	if err != nil {
		return nil, err
	}
	ask := view.AuditQuery{Who: data.Who, Path: data.Path, Text: data.Text, Internal: data.Internal, Before: before, Limit: linesOfAudit}
	if data.Kind != "" {
		ask.Kinds = []string{data.Kind}
	}
	if ask.Since, err = d.timeIn("since", data.Since); err != nil {
		return nil, err
	}
	if ask.Until, err = d.timeIn("until", data.Until); err != nil {
		return nil, err
	}
	if data.Audit, err = d.view.Audit(r.Context(), ask); err != nil {
		return nil, err
	}
	same := map[string]string{"who": data.Who, "path": data.Path, "kind": data.Kind, "q": data.Text, "since": data.Since, "until": data.Until, "internal": q.Get("internal")}
	if before > 0 {
		data.Newest = address("/audit", same)
	}
	if data.Next > 0 {
		same["before"] = strconv.FormatUint(data.Next, 10)
		data.Older = address("/audit", same)
	}
	return data, nil
}

// timeIn parses a time from a form field, in the format of browsers, or from a URL. A time without a zone is in
// the zone that pages show.
func (d *Dashboard) timeIn(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(form, text, d.now().Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, &lockkeeper.InputError{Field: field, Value: text, Reason: "not a time", Next: "write one like 2026-01-31T09:00"}
}
