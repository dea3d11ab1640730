// Package promtext keeps counters and histograms, and writes metrics in the text format of
// Prometheus (version 0.0.4), which other collectors read as well.
//
//	requests := promtext.NewCounter("requests_total", "Requests by route.", "route")
//	requests.Add(1, "GET /")
//	page := promtext.NewPage()
//	page.Gauge(float64(queued), "queue_items", "Queued items.")
//	page.Include(requests)
//	_, err := page.WriteTo(w)
//
// The official client library has the same features. It would add 1.6 MB to the program, because it
// includes protocol buffers.
//
// Invariants:
//
//  1. The samples of a metric are adjacent, with one line each for its help and type.
//  2. Label values and help may be any text: they are escaped.
//
// Any number of goroutines can use one counter or histogram. A page belongs to one goroutine. The
// package starts none.
package promtext
