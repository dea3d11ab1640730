package promtext

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
)

// series is one value of type T for each combination of label values.
type series[T any] struct {
	name, help string
	labels     []string

	mu     sync.Mutex
	values map[string]T // by the label values, joined with separator
}

// separator cannot be in a label value, which is UTF-8.
const separator = "\xff"

// pairs returns the labels with the values of a key, and more pairs.
func (s *series[T]) pairs(key string, more ...string) []string {
	var list []string
	if len(s.labels) > 0 {
		for i, value := range strings.Split(key, separator) {
			list = append(list, s.labels[i], value)
		}
	}
	return append(list, more...)
}

// A Counter counts, for each combination of label values.
type Counter struct{ series[float64] }

// NewCounter returns a counter that is 0. Without labels, it is written from the beginning.
func NewCounter(name, help string, labels ...string) *Counter {
	c := &Counter{series[float64]{name: name, help: help, labels: labels, values: map[string]float64{}}}
	if len(labels) == 0 {
		c.values[""] = 0
	}
	return c
}

// Add increases the counter with these label values, one for each label.
func (c *Counter) Add(n float64, values ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[strings.Join(values, separator)] += n
}

func (c *Counter) collect(p *Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		p.Count(c.values[key], c.name, c.help, c.pairs(key)...)
	}
}

// A Histogram counts values by size, for each combination of label values.
type Histogram struct {
	series[*sizes]
	limits []float64
}

// sizes counts the values of one combination of labels.
type sizes struct {
	counts []uint64 // by limit; the last counts larger values
	sum    float64
}

// NewHistogram returns an empty histogram with buckets that end at the limits, which increase. Without
// labels, it is written from the beginning.
func NewHistogram(name, help string, limits []float64, labels ...string) *Histogram {
	h := &Histogram{series[*sizes]{name: name, help: help, labels: labels, values: map[string]*sizes{}}, limits}
	if len(labels) == 0 {
		h.values[""] = h.empty()
	}
	return h
}

func (h *Histogram) empty() *sizes { return &sizes{counts: make([]uint64, len(h.limits)+1)} }

// Observe counts a value under these label values, one for each label.
func (h *Histogram) Observe(value float64, values ...string) {
	key := strings.Join(values, separator)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.values[key]
	if s == nil {
		s = h.empty()
		h.values[key] = s
	}
	at, _ := slices.BinarySearch(h.limits, value) // a bucket includes its limit
	s.counts[at]++
	s.sum += value
}

func (h *Histogram) collect(p *Page) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(h.values)) {
		s, upTo := h.values[key], uint64(0)
		for i, n := range s.counts {
			limit := math.Inf(1)
			if i < len(h.limits) {
				limit = h.limits[i]
			}
			upTo += n
			p.add("histogram", h.name, h.help, sample{suffix: "_bucket", labels: h.pairs(key, "le", number(limit)), value: float64(upTo)})
		}
		p.add("histogram", h.name, h.help, sample{suffix: "_sum", labels: h.pairs(key), value: s.sum})
		p.add("histogram", h.name, h.help, sample{suffix: "_count", labels: h.pairs(key), value: float64(upTo)})
	}
}
