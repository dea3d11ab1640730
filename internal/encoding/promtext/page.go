package promtext

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"
)

// ContentType is the media type of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// A Page is the metrics of one scrape.
type Page struct {
	metrics []*metric // in the order of their first sample
	byName  map[string]*metric
}

// metric is the samples of one name.
type metric struct {
	name, help, kind string
	samples          []sample
}

// sample is one line of a page.
type sample struct {
	suffix string // after the name of the metric, such as _sum
	labels []string
	value  float64
}

// NewPage returns an empty page.
func NewPage() *Page { return &Page{byName: map[string]*metric{}} }

// Gauge adds the present value of something. Labels are pairs of a name and a value.
func (p *Page) Gauge(value float64, name, help string, labels ...string) {
	p.add("gauge", name, help, sample{labels: labels, value: value})
}

// Count adds the present value of a counter that is kept elsewhere.
func (p *Page) Count(value float64, name, help string, labels ...string) {
	p.add("counter", name, help, sample{labels: labels, value: value})
}

// Include adds counters and histograms.
func (p *Page) Include(list ...interface{ collect(*Page) }) {
	for _, c := range list {
		c.collect(p)
	}
}

func (p *Page) add(kind, name, help string, s sample) {
	m := p.byName[name]
	if m == nil {
		m = &metric{name: name, help: help, kind: kind}
		p.byName[name] = m
		p.metrics = append(p.metrics, m)
	}
	m.samples = append(m.samples, s)
}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeValue = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// WriteTo writes the page.
func (p *Page) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	for _, m := range p.metrics {
		b.WriteString("# HELP " + m.name + " " + escapeHelp.Replace(m.help) + "\n# TYPE " + m.name + " " + m.kind + "\n")
		for _, s := range m.samples {
			b.WriteString(m.name + s.suffix)
			for i := 0; i+1 < len(s.labels); i += 2 {
				b.WriteByte("{,"[min(i, 1)])
				b.WriteString(s.labels[i] + `="` + escapeValue.Replace(s.labels[i+1]) + `"`)
			}
			if len(s.labels) > 1 {
				b.WriteByte('}')
			}
			b.WriteString(" " + number(s.value) + "\n")
		}
	}
	return b.WriteTo(w)
}

func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
