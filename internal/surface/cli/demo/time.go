package demo

import (
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// An act is an activity as the picture shows it. If several share one cell, the last in this order is shown.
type act uint8

const (
	actNone act = iota
	actWait
	actHold
	actAgent
	actCheck
	actLand
)

var actOf = map[view.Activity]act{view.ActivityAfter: actWait, view.ActivityQueued: actWait, view.ActivityBlocked: actWait,
	view.ActivityPreparing: actHold, view.ActivityLanding: actHold, view.ActivityAgent: actAgent, view.ActivityCheck: actCheck, view.ActivityLanded: actLand}

// picture shows who ran when, and who waited for whom.
type picture struct {
	*view.Timeline
	crashed time.Time // zero: no crash
}

type symbols struct {
	cells [6]string // cell symbols, by act
	crash string
}

var (
	inBlocks = symbols{cells: [6]string{" ", "·", "─", "█", "▒", "◆"}, crash: "┃"}
	inASCII  = symbols{cells: [6]string{" ", ".", "-", "#", "=", "*"}, crash: "|"}
)

var tint = [6]string{"", term.Yellow, term.Dim, "", term.Green, term.Bold}

// print writes the picture in the given width.
func (p picture) print(to io.Writer, s symbols, columns int, paint func(color, text string) string) {
	label := 0
	for _, l := range p.Lanes {
		label = max(label, len(l.Work))
	}
	width := max(20, columns-label-4)
	total := p.Over.Sub(p.Began)
	column := func(at time.Time) int {
		if total <= 0 {
			return 0
		}
		return min(width-1, max(0, int(int64(at.Sub(p.Began))*int64(width)/int64(total))))
	}
	crash := -1
	if !p.crashed.IsZero() {
		crash = column(p.crashed)
	}
	for _, l := range p.Lanes {
		cells := make([]act, width)
		for _, s := range l.Stretches {
			for i := column(s.Began); i <= column(p.over(s)); i++ {
				cells[i] = max(cells[i], actOf[s.What])
			}
		}
		fmt.Fprintf(to, "  %-*s  %s\n", label, l.Work, bar(cells, crash, s, paint))
	}
	fmt.Fprintln(to, paint(term.Dim, strings.TrimRight(fmt.Sprintf("  %-*s  %s", label, "", axis(width, total)), " ")))
	legend := fmt.Sprintf("  %s agent  %s test  %s landed  %s locks held  %s waiting", s.cells[actAgent], s.cells[actCheck], s.cells[actLand], s.cells[actHold], s.cells[actWait])
	if crash >= 0 {
		legend += fmt.Sprintf("  %s kill -9", s.crash)
	}
	fmt.Fprintln(to, paint(term.Dim, legend))
}

// over returns the end of an interval. Work that ran at the crash ended there: such an agent
// has reported no cost.
func (p picture) over(s view.Interval) time.Time {
	held := s.What == view.ActivityPreparing && s.Over.After(p.crashed)
	killed := s.What == view.ActivityAgent && s.USD == 0
	if s.Began.Before(p.crashed) && (held || killed) {
		return p.crashed
	}
	return s.Over
}

// bar returns one lane of the picture. Each sequence of equal cells is painted at once.
func bar(cells []act, crash int, s symbols, paint func(color, text string) string) string {
	var b strings.Builder
	for i := 0; i < len(cells); {
		if i == crash && cells[i] != actLand {
			b.WriteString(paint(term.Red, s.crash))
			i++
			continue
		}
		end := i
		for end < len(cells) && cells[end] == cells[i] && (end == i || end != crash) {
			end++
		}
		text := strings.Repeat(s.cells[cells[i]], end-i)
		if color := tint[cells[i]]; color != "" {
			text = paint(color, text)
		}
		b.WriteString(text)
		i = end
	}
	return strings.TrimRight(b.String(), " ")
}

func axis(width int, total time.Duration) string {
	step := time.Second
	for _, longer := range []time.Duration{2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600} {
		if int64(step)*int64(width) >= 7*int64(total) {
			break
		}
		step = longer * time.Second
	}
	line := []rune(strings.Repeat(" ", width))
	for at := time.Duration(0); at <= total; at += step {
		i := 0
		if total > 0 {
			i = int(int64(at) * int64(width) / int64(total))
		}
		if mark := []rune(term.Span(at.Round(time.Second))); i+len(mark) <= width { // leave out a time that does not fit
			copy(line[i:], mark)
		}
	}
	return string(line)
}

// printWaits lists who waited for whom, the longest first.
func (p picture) printWaits(to io.Writer) {
	for _, w := range p.Waits {
		var files []string
		for _, name := range w.Paths {
			files = append(files, path.Base(name))
		}
		fmt.Fprintf(to, "  %s waited %.1fs for %s (%s)\n", w.Work, float64(w.Took), strings.Join(w.Behind, ", then "), strings.Join(files, ", "))
	}
}
