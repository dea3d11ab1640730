package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// rowsOfPage is how many rows of a list a page shows.
const rowsOfPage = 100

// A pager says which rows of a list a page shows, and links to the others.
type pager struct {
	First, Last, All int    // the first and the last shown row, counted from 1, and the number of rows
	Back, Next       string // addresses; empty: there are no such rows
}

// paged returns the rows of a list that a request asks for: the query parameter names the page, counted from 1. A page behind
// the end shows the last rows, because lists get shorter while people read them.
func paged[T any](list []T, r *http.Request, parameter string) ([]T, pager, error) {
	return pagedBy(list, r, parameter, rowsOfPage)
}

func pagedBy[T any](list []T, r *http.Request, parameter string, rows int) ([]T, pager, error) {
	asked, err := pageNumber(r.URL.Query().Get(parameter))
	if err != nil {
		return nil, pager{}, err
	}
	pages := max(1, (len(list)+rows-1)/rows)
	page := int(min(max(asked, 1), uint64(pages)))
	from, to := (page-1)*rows, min(page*rows, len(list))
	p := pager{First: min(from+1, len(list)), Last: to, All: len(list)}
	if page > 1 {
		p.Back = changedAddress(r, parameter, strconv.Itoa(page-1))
	}
	if page < pages {
		p.Next = changedAddress(r, parameter, strconv.Itoa(page+1))
	}
	return list[from:to], p, nil
}

// changedAddress returns the address of a request with another value of one parameter, and without some others. An
// empty value leaves the parameter out.
func changedAddress(r *http.Request, parameter, value string, without ...string) string {
	q := r.URL.Query()
	for _, name := range append(without, parameter) {
		q.Del(name)
	}
	if value != "" {
		q.Set(parameter, value)
	}
	to := url.URL{Path: r.URL.Path, RawQuery: strings.ReplaceAll(q.Encode(), "%2F", "/")} // as in address
	return to.String()
}
