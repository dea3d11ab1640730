package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"lockkeeper/internal/surface/view"
)

// These constants are the measures of the picture. Lanes scale with the page, so positions are parts of
// laneWidth.
const (
	laneWidth, laneHeight = 10_000, 20
	thinnest              = 14
	lanesDrawn            = 250
	ticksAtMost           = 9
	lettersOfLane         = 28
)

type timelineData struct {
	*view.Timeline
	Drawn []lane
	Ticks []tick
	Grid  string // SVG path of the tick lines
	Busy  string // SVG path of the number of agents at work
	Most  int
	Cut   int // how many lanes are not drawn
	Whole bool

	Earlier, Later, Closer, Farther, All string // URLs; empty: not possible
}

// A lane shows one unit of work over time.
type lane struct {
	Work  string
	Item  string // one of the lane's items
	Parts []stretch
	Sum   string // summary in words
}

// A stretch is an interval of a lane with one activity.
type stretch struct {
	X, Width int
	Kind     view.Activity
	Item     string
	Title    string
}

type tick struct {
	At    string // distance from the left, in percent
	Label string
}

func (d *Dashboard) timelinePage(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	from, err := d.timeIn("from", q.Get("from"))
	if err != nil {
		return nil, err
	}
	to, err := d.timeIn("to", q.Get("to"))
	if err != nil {
		return nil, err
	}
	t, err := d.view.Timeline(r.Context(), from, to)
	if err != nil {
		return nil, err
	}
	data := timelineData{Timeline: t, Whole: from.IsZero() && to.IsZero()}
	if t.To.After(t.From) {
		data.draw(d.now())
		data.steer()
	}
	return data, nil
}

// x returns the horizontal position of a time, limited to the picture.
func (t *timelineData) x(at time.Time) int {
	whole := t.To.Sub(t.From)
	return max(0, min(laneWidth, int(float64(at.Sub(t.From))/float64(whole)*laneWidth)))
}

func (t *timelineData) draw(now time.Time) {
	t.ticks(now.Location())
	for i, l := range t.Lanes {
		if i == lanesDrawn {
			t.Cut = len(t.Lanes) - lanesDrawn
			break
		}
		t.Drawn = append(t.Drawn, t.lane(l, now.Location()))
	}
	t.busy()
}

func (t *timelineData) lane(l view.Lane, zone *time.Location) lane {
	drawn := lane{Work: l.Work}
	took := map[view.Activity]time.Duration{}
	landed := 0
	for _, s := range l.Stretches {
		over := s.Over
		if s.Open || over.Before(s.Began) {
			over = t.At
		}
		if s.Item != "" {
			drawn.Item = s.Item
		}
		from, to := t.x(s.Began), t.x(over)
		if over.Before(t.From) || s.Began.After(t.To) {
			continue
		}
		part := stretch{X: min(from, laneWidth-thinnest), Width: max(thinnest, to-from), Kind: s.What, Item: s.Item, Title: titleOf(l, s, over, zone)}
		if s.What == view.ActivityLanded {
			landed++
			part.Width = 2 * thinnest
		} else {
			took[s.What] += over.Sub(s.Began)
		}
		drawn.Parts = append(drawn.Parts, part)
	}
	var sums []string
	for _, what := range []view.Activity{view.ActivityAgent, view.ActivityCheck, view.ActivityBlocked, view.ActivityQueued, view.ActivityHolding} {
		if took[what] > 0 {
			sums = append(sums, doingWords[what]+" "+exact(took[what]))
		}
	}
	if landed > 0 {
		sums = append(sums, counted(landed, "landing"))
	}
	drawn.Sum = strings.Join(sums, ", ")
	return drawn
}

var doingWords = map[view.Activity]string{
	view.ActivityQueued: "queued", view.ActivityBlocked: "blocked by locks", view.ActivityHolding: "holding locks", view.ActivityAgent: "agent", view.ActivityCheck: "tests", view.ActivityLanded: "landed",
}

func titleOf(l view.Lane, s view.Interval, over time.Time, zone *time.Location) string {
	clock := "15:04:05"
	text := l.Work + ": " + doingWords[s.What]
	if s.Phase != "" {
		text += ", " + plain(s.Phase)
	}
	if s.What == view.ActivityLanded {
		text += " at " + s.Began.In(zone).Format(clock)
	} else {
		text += fmt.Sprintf("\n%s to %s, %s", s.Began.In(zone).Format(clock), over.In(zone).Format(clock), exact(over.Sub(s.Began)))
		if s.Open {
			text += ", still running"
		}
	}
	if s.Text != "" {
		text += "\n" + s.Text
	}
	if s.USD > 0 {
		text += "\n" + dollars(s.USD)
	}
	return text
}

func (t *timelineData) ticks(zone *time.Location) {
	whole := t.To.Sub(t.From)
	steps := []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if whole/s <= ticksAtMost {
			step = s
			break
		}
	}
	form := "15:04"
	switch {
	case step < time.Minute:
		form = "15:04:05"
	case step >= 24*time.Hour:
		form = "2 Jan"
	}
	_, offset := t.From.In(zone).Zone()
	shift := time.Duration(offset) * time.Second
	var grid strings.Builder
	past := time.Duration(t.From.Add(shift).UnixNano()) % step // since the previous tick
	for at := t.From.Add(step - past); at.Before(t.To); at = at.Add(step) {
		x := t.x(at)
		fmt.Fprintf(&grid, "M%d 0V%d", x, laneHeight)
		if x < laneWidth/40 || x > laneWidth-laneWidth/40 { // there is no room for the label
			continue
		}
		t.Ticks = append(t.Ticks, tick{At: fmt.Sprintf("%.2f%%", float64(x)/laneWidth*100), Label: at.In(zone).Format(form)})
	}
	t.Grid = grid.String()
}

// busyHeight is the height of the picture of agents at work.
const busyHeight = 44

// busy draws how many agents worked at the same time.
func (t *timelineData) busy() {
	for _, p := range t.Timeline.Busy {
		t.Most = max(t.Most, p.Agents)
	}
	if t.Most == 0 {
		return
	}
	y := func(agents int) int { return busyHeight - agents*(busyHeight-2)/t.Most }
	var path strings.Builder
	fmt.Fprintf(&path, "M0 %d", busyHeight)
	last := 0
	for _, p := range t.Timeline.Busy {
		fmt.Fprintf(&path, "H%dV%d", t.x(p.At), y(p.Agents))
		last = p.Agents
	}
	end := t.To
	if t.Timeline.At.Before(end) {
		end = t.Timeline.At
	}
	if last > 0 {
		fmt.Fprintf(&path, "H%d", t.x(end))
	}
	fmt.Fprintf(&path, "V%dZ", busyHeight)
	t.Busy = path.String()
}

// steer sets the URLs for moving and zooming.
func (t *timelineData) steer() {
	whole := t.To.Sub(t.From)
	at := func(from, to time.Time) string {
		return "/timeline?" + url.Values{"from": {from.UTC().Format(time.RFC3339Nano)}, "to": {to.UTC().Format(time.RFC3339Nano)}}.Encode()
	}
	if t.Began.Before(t.From) && !t.Began.IsZero() {
		t.Earlier = at(t.From.Add(-whole/2), t.To.Add(-whole/2))
	}
	if t.Over.After(t.To) {
		t.Later = at(t.From.Add(whole/2), t.To.Add(whole/2))
	}
	if whole > 4*time.Second {
		t.Closer = at(t.From.Add(whole/4), t.To.Add(-whole/4))
	}
	if !t.Whole {
		t.Farther = at(t.From.Add(-whole/2), t.To.Add(whole/2))
		t.All = "/timeline"
	}
}
