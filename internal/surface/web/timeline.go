package web

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"lockkeeper/internal/surface/view"
)

// These constants are the measures of the picture. Lanes scale with the page, so positions are parts of
// laneWidth.
const (
	laneWidth, laneHeight = 10_000, 20
	thinnest              = 14
	ticksAtMost           = 9
	lettersOfLane         = 28
	busySteps             = 500 // how many steps the line of busy agents has at most
)

// How many lanes and how many waits a page shows. A lane has a dozen activities.
const (
	lanesOfPage = 36
	waitsOfPage = 25
)

type timelineData struct {
	*view.Timeline
	Text   string
	Since  string // From and To as a form has them
	Until  string
	Sorts  []choice
	Shown  []view.Lane
	Drawn  []lane
	Longer []view.LockWait // the waits that are shown
	Ticks  []tick
	Grid   string // SVG path of the tick lines
	Busy   string // SVG path of the number of agents at work
	Most   int
	Whole  bool
	Legend []legendEntry

	Pages, WaitPages pager

	Earlier, Later, Closer, Farther, All string // URLs; empty: not possible
}

// A lane shows one unit of work over time.
type lane struct {
	view.Lane
	Item    string // one of the lane's items
	Parts   []stretch
	Hatched string // SVG path of what waits for locks
	Striped string // SVG path of tests
	Sum     string // how long each activity took, in words
	Short   string // the same in a few words
}

// A stretch is an interval of a lane with one activity.
type stretch struct {
	X, Width int
	Kind     view.Activity
	Path     string // SVG path
	Title    string
}

type tick struct {
	At    string // distance from the left, in percent
	Label string
}

// A look is how the picture shows an activity. Activities differ in height and pattern, not only in color.
type look struct {
	y, height int
	word      string
	pattern   string
}

// activities are the shown activities in the order of the legend.
var activities = []view.Activity{view.ActivityAfter, view.ActivityQueued, view.ActivityBlocked, view.ActivityPreparing, view.ActivityAgent, view.ActivityCheck, view.ActivityLanding, view.ActivityLanded}

var looks = map[view.Activity]look{
	view.ActivityAfter:     {y: 9, height: 2, word: "waiting for other work"},
	view.ActivityQueued:    {y: 8, height: 4, word: "waiting for a slot"},
	view.ActivityBlocked:   {y: 5, height: 10, word: "waiting for locks", pattern: "hatched"},
	view.ActivityPreparing: {y: 6, height: 8, word: "preparing"},
	view.ActivityAgent:     {y: 2, height: 16, word: "agent"},
	view.ActivityCheck:     {y: 2, height: 16, word: "tests", pattern: "striped"},
	view.ActivityLanding:   {y: 4, height: 12, word: "landing"},
	view.ActivityLanded:    {y: 0, height: 20, word: "landed"},
}

// path returns the SVG path of an activity.
func (l look) path(x, width int) string {
	return fmt.Sprintf("M%d %dh%dv%dh-%dz", x, l.y, width, l.height, width)
}

// A legendEntry explains how an activity looks.
type legendEntry struct {
	Kind          view.Activity
	Word, Pattern string
	Path          string
}

// legend returns the explanations of all activities. Its pictures are laneWidth/32 wide.
func legend() (list []legendEntry) {
	for _, what := range activities {
		l, x, width := looks[what], 0, laneWidth/32
		if what == view.ActivityLanded {
			x, width = width/2, 2*thinnest
		}
		list = append(list, legendEntry{Kind: what, Word: l.word, Pattern: l.pattern, Path: l.path(x, width)})
	}
	return list
}

func (d *Dashboard) timelinePage(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	ask := view.TimelineQuery{Text: strings.TrimSpace(q.Get("q")), Sort: q.Get("sort")}
	var err error
	if ask.From, err = d.timeIn("from", q.Get("from")); err != nil {
		return nil, err
	}
	if ask.To, err = d.timeIn("to", q.Get("to")); err != nil {
		return nil, err
	}
	t, err := d.view.Timeline(r.Context(), ask)
	if err != nil {
		return nil, err
	}
	data := timelineData{Timeline: t, Text: ask.Text, Whole: ask.From.IsZero() && ask.To.IsZero(), Legend: legend()}
	if !data.Whole {
		const form = "2006-01-02T15:04:05"
		data.Since, data.Until = t.From.In(d.now().Location()).Format(form), t.To.In(d.now().Location()).Format(form)
	}
	for _, name := range view.TimelineSorts() {
		data.Sorts = append(data.Sorts, choice{Name: name, URL: changedAddress(r, "sort", name, "page"), Here: name == t.Sort})
	}
	if data.Shown, data.Pages, err = pagedBy(t.Lanes, r, "page", lanesOfPage); err != nil {
		return nil, err
	}
	if data.Longer, data.WaitPages, err = pagedBy(t.Waits, r, "waits", waitsOfPage); err != nil {
		return nil, err
	}
	if t.To.After(t.From) {
		data.draw(d.now())
		data.steer(r)
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
	for _, l := range t.Shown {
		t.Drawn = append(t.Drawn, t.lane(l, now.Location()))
	}
	t.busy()
}

func (t *timelineData) lane(l view.Lane, zone *time.Location) lane {
	drawn := lane{Lane: l}
	patterns := map[string]*strings.Builder{"hatched": {}, "striped": {}, "": {}}
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
		look := looks[s.What]
		part := stretch{X: min(from, laneWidth-thinnest), Width: max(thinnest, to-from), Kind: s.What, Title: titleOf(s, over, zone)}
		if s.What == view.ActivityLanded {
			part.Width = 2 * thinnest
		}
		part.Path = look.path(part.X, part.Width)
		patterns[look.pattern].WriteString(part.Path)
		drawn.Parts = append(drawn.Parts, part)
	}
	drawn.Hatched, drawn.Striped = patterns["hatched"].String(), patterns["striped"].String()
	drawn.Sum, drawn.Short = sumsOf(l)
	return drawn
}

// sumsOf returns how long the activities of a lane took, in words and in a few words.
func sumsOf(l view.Lane) (long, short string) {
	var sums, few []string
	for _, what := range activities {
		if took := l.Totals[what].Duration(); took > 0 {
			sums = append(sums, looks[what].word+" "+briefly(took))
		}
	}
	if l.USD > 0 {
		sums, few = append(sums, dollars(l.USD)), append(few, dollars(l.USD))
	}
	if l.Worked >= 1 {
		few = append(few, "worked "+span(l.Worked.Duration()))
	}
	if l.Waited >= 1 {
		few = append(few, "waited "+span(l.Waited.Duration()))
	}
	if l.Landings > 0 {
		sums = append(sums, counted(l.Landings, "landing"))
	}
	return strings.Join(sums, ", "), strings.Join(few, ", ")
}

func titleOf(s view.Interval, over time.Time, zone *time.Location) string {
	clock := "15:04:05"
	text := looks[s.What].word
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

// busy draws how many agents worked at the same time. Of the changes in one step it draws the highest.
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
	const width = laneWidth / busySteps
	last, drawn := 0, 0 // agents now, and as drawn last
	points := t.Timeline.Busy
	for i := 0; i < len(points); {
		step := t.x(points[i].At) / width
		most := last
		for ; i < len(points) && t.x(points[i].At)/width == step; i++ {
			last = points[i].Agents
			most = max(most, last)
		}
		if most != drawn {
			fmt.Fprintf(&path, "H%dV%d", step*width, y(most))
			drawn = most
		}
		if last != drawn {
			fmt.Fprintf(&path, "H%dV%d", min((step+1)*width, laneWidth), y(last))
			drawn = last
		}
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
func (t *timelineData) steer(r *http.Request) {
	whole := t.To.Sub(t.From)
	at := func(from, to time.Time) string {
		q := r.URL.Query()
		q.Del("page")
		q.Set("from", from.UTC().Format(time.RFC3339Nano))
		q.Set("to", to.UTC().Format(time.RFC3339Nano))
		return "/timeline?" + q.Encode()
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
		t.All = changedAddress(r, "from", "", "to", "page")
	}
}
