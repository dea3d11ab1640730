//go:build ui

package ui_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"lockkeeper/internal/flow/conduct"

	"lockkeeper"
)

// inTheWay returns what covers the middle or an edge of an element that was scrolled into view.
// It is empty if the element can be seen and touched.
const inTheWay = `((el) => {
  el.scrollIntoView({block: "nearest"});
  const box = el.getBoundingClientRect();
  for (const part of [.5, .1, .9]) {
    const over = document.elementFromPoint(box.left + box.width / 2, box.top + box.height * part);
    if (!over || !el.contains(over) && !over.contains(el)) return (over?.outerHTML ?? "the edge of the window").slice(0, 200);
  }
  return "";
})(document.querySelector(%q))`

// On a phone, nothing covers the controls that answer a topic, even if the keyboard leaves half
// of the window.
// shows: PL-94
func TestTopicOnAPhone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	s := newStage(t)
	b := newTab(t, s)
	_, err := s.Runs.Start(ctx, conduct.Options{Flow: "controllers", By: lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}})
	must(t, err)
	s.until(ctx, "the run to wait for people", func() bool { return !s.Runs.Now().Active })
	b.open("/decide?kind=topic")
	for name, height := range map[string]int64{"whole": 844, "with the keyboard": 420} {
		b.sized(390, height, false)
		for _, what := range []string{"#found", "button[value=answer]", "button[value=reject]", "#note"} {
			if over := b.value(fmt.Sprintf(inTheWay, what)); over != "" {
				t.Errorf("%s: over %s lies %s", name, what, over)
			}
		}
	}
	b.sized(390, 844, false)
	b.picture("topic-phone")
	b.do("writing", evaluate(`document.querySelector("#found").value = "By cursor."`))
	b.click("button[value=answer]")
	b.sees("#said", "is answered")
}
