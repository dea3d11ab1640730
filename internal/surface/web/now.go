package web

import (
	"fmt"
	"net/http"
	"time"

	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

type nowData struct {
	*view.Now
	Conducts *acts.Running // the run of this server; nil: it starts no runs
}

// visit is the pause after which the next request counts as a new visit.
const visit = 15 * time.Minute

// A mark records in a browser's cookie which events its person has seen.
type mark struct {
	since uint64 // the last event seen before this visit
	last  uint64 // the last event shown
	at    time.Time
}

const markName = "lockkeeper-seen"

// markOf reads the mark from a browser's cookie. An invalid one counts as missing.
func markOf(r *http.Request) (m mark) {
	c, err := r.Cookie(markName)
	if err != nil {
		return m
	}
	var at int64
	if _, err := fmt.Sscanf(c.Value, "%d.%d.%d", &m.since, &m.last, &at); err != nil {
		return mark{}
	}
	m.at = time.Unix(at, 0)
	return m
}

func (m mark) put(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: markName, Value: fmt.Sprintf("%d.%d.%d", m.since, m.last, m.at.Unix()), Path: "/",
		MaxAge: int((400 * 24 * time.Hour).Seconds()), HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
}

func (d *Dashboard) nowPage(w http.ResponseWriter, r *http.Request) (any, error) {
	m := markOf(r)
	if d.now().Sub(m.at) > visit {
		m.since = m.last
	}
	now, err := d.view.Now(r.Context(), m.since)
	if err != nil {
		return nil, err
	}
	if m.since == 0 { // this is the first visit, so only later events are new
		m.since = now.Seq
	}
	m.last, m.at = now.Seq, d.now()
	m.put(w, r)
	data := nowData{Now: now}
	if d.runs != nil {
		running := d.runs.Now()
		data.Conducts = &running
	}
	return data, nil
}

// seen marks all events shown so far as seen.
func (d *Dashboard) seen(w http.ResponseWriter, r *http.Request) {
	m := markOf(r)
	m.since, m.at = m.last, d.now()
	m.put(w, r)
	if !isPart(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	w.Header().Set(nextHeader, "")
	w.WriteHeader(http.StatusNoContent)
}

// A share is a part of a bar, in thousandths.
type share struct {
	From, Width int
	Tone        string
}

// bar splits a whole into shares. Parts alternate between amounts and tones.
func bar(whole float64, parts ...any) (list []share) {
	at := 0.0
	for i := 0; i+1 < len(parts) && whole > 0; i += 2 {
		part := min(number(parts[i]), whole-at)
		from := int(at / whole * 1000)
		at += part
		if width := int(at/whole*1000) - from; width > 0 {
			list = append(list, share{From: from, Width: width, Tone: fmt.Sprint(parts[i+1])})
		}
	}
	return list
}

// number converts any number of a template to float64.
func number(n any) float64 {
	switch n := n.(type) {
	case int:
		return float64(n)
	case float64:
		return n
	}
	return 0
}
