package web

import (
	"fmt"
	"html"
	"html/template"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

func TestMoments(t *testing.T) {
	for _, c := range []struct {
		at         time.Time
		age, clock string
	}{
		{ago(0), "0s ago", "12:00:00"},
		{ago(59 * time.Second), "59s ago", "11:59:01"},
		{ago(7*time.Minute + 30*time.Second), "7m ago", "11:52:30"},
		{ago(3*time.Hour + 5*time.Minute), "3h 05m ago", "08:55:00"},
		{ago(47 * time.Hour), "47h 00m ago", "29 Jan 13:00"},
		{ago(400 * 24 * time.Hour), "400d ago", "2024-12-27 12:00"},
		{noon.Add(20 * time.Minute), "in 20m", "12:20:00"},
	} {
		m := momentOf(c.at, noon)
		if m.Age != c.age || m.Clock != c.clock || !strings.Contains(m.Whole, fmt.Sprint(c.at.Year())) {
			t.Errorf("%v: %+v", c.at, m)
		}
	}
}

func TestNumbers(t *testing.T) {
	for got, want := range map[string]string{
		grouped(1_234_567): "1\u00a0234\u00a0567", grouped(-999): "-999", counted(1, "item"): "1 item", counted(0, "fix", "fixes"): "0 fixes",
		view.Bytes(1023): "1023 B", view.Bytes(12_000): "11.7 KiB", exact(1500 * time.Millisecond): "1.5s", exact(3 * time.Millisecond): "3ms", exact(61 * time.Second): "1m 01s",
	} {
		if got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

// The finished page shows every character of any text, and a form field sends back its value unchanged.
func FuzzLegible(f *testing.F) {
	for _, seed := range []string{"plain", hostile.path, hostile.text, hostile.log, "a\xffb", `" value="x`, "</input>\u202e>", "\r\n\u2028"} {
		f.Add(seed)
	}
	page := template.Must(template.New("").Parse(`<p title="{{.}}">{{.}}</p><input type="hidden" value="{{.}}"><b>{{.}}</b>`))
	f.Fuzz(func(t *testing.T, text string) {
		var b strings.Builder
		if err := page.Execute(&b, text); err != nil {
			t.Fatal(err)
		}
		out := legible(b.String())
		if strings.ContainsFunc(out, isOdd) {
			t.Fatalf("%q", out)
		}
		_, rest, _ := strings.Cut(out, `<input type="hidden" value="`)
		value, rest, _ := strings.Cut(rest, `"><b>`)
		came := strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
		if strings.Count(came, "\ufffd") == strings.Count(html.UnescapeString(value), "\ufffd") && html.UnescapeString(value) != came && !hasC1(came) {
			t.Fatalf("%q comes back as %q", text, html.UnescapeString(value))
		}
		if strings.Contains(rest, "&#x202E;") {
			t.Fatalf("a text is written as a field: %q", rest)
		}
	})
}

// hasC1 reports whether a text has C1 control characters, whose character references HTML reads as other
// characters.
func hasC1(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 && r < 0xA0 || r == '\r' })
}

func TestDiffLines(t *testing.T) {
	lines, left := linesOf(oneFile + "\\ No newline at end of file\n")
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprintf("%s %d %d %s", l.Kind, l.Old, l.New, strings.TrimSpace(l.Text)))
	}
	want := []string{"hunk 0 0 @@ -1,6 +1,7 @@", " 1 1 class Post < ApplicationRecord", "del 2 0 scope :page, ->(n) { offset(n * 20).limit(20) }",
		`add 0 2 scope :after, ->(id) { where("id > ?", id).limit(20) }`, "add 0 3 scope :recent, -> { order(id: :desc) }", " 3 4 validates :title, presence: true", " 4 5 ", " 5 6 belongs_to :author", "hunk 0 0 No newline at end of file"}
	if fmt.Sprint(got) != fmt.Sprint(want) || left != 0 {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if lines, left := linesOf("@@ -0,0 +1,9000 @@\n" + strings.Repeat("+x\n", 9000)); len(lines)+left != 9001 || len(lines) != linesShown {
		t.Errorf("%d lines, %d left", len(lines), left)
	}
	if lines, _ := linesOf("nothing of a diff"); len(lines) > 0 {
		t.Errorf("%v", lines)
	}
}

func TestUnstyled(t *testing.T) {
	for in, want := range map[string]string{"\x1b[1;32mgreen\x1b[0m": "green", "\x1b[2J\x1b[?25lx": "x", "no": "no", "\x1b[": "\x1b[", "\x1b[31": "\x1b[31", "\x1b]0;title\x07": "\x1b]0;title\x07"} {
		if got := unstyled(in); got != want {
			t.Errorf("%q: %q instead of %q", in, got, want)
		}
	}
}

// A waiter is drawn to the right of the node it waits for, no two nodes overlap, and a cycle
// terminates.
func TestPicture(t *testing.T) {
	p := draw(middle(usual).locks.Graph)
	at := map[string]drawnNode{}
	for _, n := range p.Nodes {
		for _, other := range at {
			if n.X == other.X && n.Y == other.Y {
				t.Errorf("%s is on %s", n.ID, other.ID)
			}
		}
		at[n.ID] = n
		if n.X+nodeWidth > p.Width || n.Y+nodeHeight > p.Height {
			t.Errorf("%s is outside", n.ID)
		}
	}
	if len(p.Nodes) != 5 || len(p.Edges) != 5 {
		t.Errorf("%d nodes, %d edges", len(p.Nodes), len(p.Edges))
	}
	for _, e := range p.Edges {
		if at[e.From].X <= at[e.To].X {
			t.Errorf("%s is not to the right of %s", e.From, e.To)
		}
	}
	circle := view.Graph{Nodes: []view.GraphNode{{ID: "a"}, {ID: "b"}, {ID: "alone"}}, Edges: []view.GraphEdge{{From: "a", To: "b"}, {From: "b", To: "a"}, {From: "a", To: "gone"}}}
	if p := draw(circle); len(p.Nodes) != 2 {
		t.Errorf("%d are drawn", len(p.Nodes))
	}
	var many view.Graph
	for i := range 200 {
		many.Nodes = append(many.Nodes, view.GraphNode{ID: fmt.Sprint(i)})
		many.Edges = append(many.Edges, view.GraphEdge{From: fmt.Sprint(i), To: "0"})
	}
	if p := draw(many); len(p.Nodes) != nodesDrawn || p.Left != 200-nodesDrawn {
		t.Errorf("%d drawn, %d left", len(p.Nodes), p.Left)
	}
}

func TestTimelinePicture(t *testing.T) {
	s := middle(usual)
	data := timelineData{Timeline: &s.timeline, Shown: s.timeline.Lanes}
	data.draw(noon)
	data.steer(httptest.NewRequest(http.MethodGet, "/timeline?sort=cost&page=2", nil))
	if len(data.Drawn) != 5 || len(data.Ticks) != 3 || data.Ticks[0].Label != "11:15" || data.Ticks[0].At != "25.00%" || data.Most != 5 {
		t.Errorf("%d lanes, ticks %v, most %d", len(data.Drawn), data.Ticks, data.Most)
	}
	for _, l := range data.Drawn {
		for _, p := range l.Parts {
			if p.X < 0 || p.Width < thinnest || p.X > laneWidth {
				t.Errorf("%s: %+v", l.Work, p)
			}
		}
	}
	if sum := data.Drawn[0].Sum; sum != "waiting for a slot 6m 00s, waiting for locks 7m 00s, agent 15m 00s, tests 4m 00s, landing 2m 00s, $1.20, 1 landing" {
		t.Error(sum)
	}
	if data.Drawn[0].Short != "$1.20, worked 21m, waited 13m" || data.Drawn[0].Hatched == "" || data.Drawn[0].Striped == "" {
		t.Errorf("%+v", data.Drawn[0])
	}
	if data.Earlier == "" || data.Later != "" || !strings.Contains(data.Closer, "sort=cost") || strings.Contains(data.Closer, "page=2") || data.All != "/timeline?sort=cost" {
		t.Errorf("%+v", data)
	}
	heights := map[string]bool{}
	for _, e := range legend() {
		l := looks[e.Kind]
		if at := fmt.Sprint(l.y, l.height, l.pattern); heights[at] || l.word == "" {
			t.Errorf("%s looks like another activity without its color", e.Kind)
		} else {
			heights[at] = true
		}
	}
	many := timelineData{Timeline: &view.Timeline{Moment: view.Moment{At: noon}, From: ago(time.Hour), To: noon}}
	for i := range 20_000 {
		many.Timeline.Busy = append(many.Timeline.Busy, view.BusyPoint{At: ago(time.Hour).Add(time.Duration(i) * 180 * time.Millisecond), Agents: i * 7 % 13})
	}
	if many.draw(noon); len(many.Busy) > 30_000 || many.Most != 12 {
		t.Errorf("the line of busy agents has %d bytes, and %d are the most", len(many.Busy), many.Most)
	}
	for _, span := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 90 * 24 * time.Hour, 3000 * 24 * time.Hour} {
		one := timelineData{Timeline: &view.Timeline{Moment: view.Moment{At: noon}, From: noon.Add(-span), To: noon}}
		one.draw(noon)
		if len(one.Ticks) > 110 {
			t.Errorf("%d ticks for %s", len(one.Ticks), span)
		}
	}
}

// The status of every phase has a color, also that of a phase added later.
func TestPhasesHaveTones(t *testing.T) {
	for _, f := range flow.All() {
		for _, p := range f.Phases {
			if tone(p.Status) == "" || p.Fixing != "" && tone(p.Fixing) != "run" {
				t.Errorf("%s %s: status %q is %q, %q is %q", f.Name, p.Name, p.Status, tone(p.Status), p.Fixing, tone(p.Fixing))
			}
		}
	}
	if tone("awaiting_decisions") != "you" || tone("planning_batches") != "run" || tone("ready") != "" || tone("") != "" {
		t.Errorf("%q %q %q %q", tone("awaiting_decisions"), tone("planning_batches"), tone("ready"), tone(""))
	}
}

// Every kind of decision has buttons with distinct keys.
func TestAnswers(t *testing.T) {
	for _, kind := range progress.Kinds() {
		keys := map[string]bool{"j": true, "k": true, "u": true, "n": true}
		list := answersTo(kind)
		if len(list) == 0 {
			t.Errorf("a %s has no answer", kind)
		}
		for _, b := range list {
			if keys[b.Key] {
				t.Errorf("%s: the key %s has two meanings", kind, b.Key)
			}
			keys[b.Key] = true
		}
	}
}

// Many results are grouped by their state, whatever the reason of each.
func TestManyResults(t *testing.T) {
	var done []acts.Done
	for i := range linesSaid {
		done = append(done, acts.Done{What: fmt.Sprintf("will be done, because of %d", i), State: "will be done"})
	}
	done = append(done, acts.Done{What: "is deferred", State: "is deferred"})
	if got := strings.Join(doneInWords(done), "; "); got != "4 times: will be done; 1 times: is deferred" {
		t.Error(got)
	}
}
