//go:build ui

package ui_test

import (
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/project/projecttest"
)

// A person reads a diff side by side and unified, in color, and writes a comment on a line by the keyboard. On a phone the
// diff needs no scrolling sideways.
func TestDiff(t *testing.T) {
	ctx, unit := t.Context(), "blog/posts"
	s := newStage(t)
	docs := projecttest.Tracker(t, s.App)
	projecttest.Planned(t, docs, unit, "app/models/a.rb")
	must(t, docs.ApprovePlan(ctx, unit, "ben"))
	version := func(content string) lockkeeper.Version {
		sum, err := docs.Keep(ctx, unit, "b1", strings.NewReader(content))
		must(t, err)
		return lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sum}
	}
	long := strings.Repeat("long_name_", 30)
	files := []flow.File{{Path: "app/models/a.rb", Old: version("class A\n  def one\n    1\n  end\nend\n"), New: version("class A\n  def one\n    \"" + long + "\"\n  end\nend\n")}}
	projecttest.Verified(t, docs, unit, "b1", files)
	must(t, docs.PutReview(ctx, unit, "b1", files))

	b := newTab(t, s)
	b.open("/decide?ref=review+blog/posts/b1")
	b.so("colors", `document.querySelector(".diff .hljs-keyword")?.textContent === "class"`)
	b.so("unified at first", `document.querySelectorAll(".diff tr.add").length === 1 && !document.querySelector(".diff table.split")`)
	b.keys("v")
	b.so("both sides in one row", `document.querySelectorAll(".diff table.split tr.change").length === 1`)
	b.open("/diff/blog/posts/b1")
	b.so("the layout is remembered", `!!document.querySelector(".diff table.split")`)
	b.keys("v")
	b.keys(">")
	b.so("the first change", `document.activeElement.matches(".diff tr.del")`)
	b.keys("c")
	b.so("the form below the line", `document.activeElement.name === "text" && document.activeElement.closest("tr").previousElementSibling.matches(".del") && document.querySelector("[name=line]").value === "3"`)
	b.keys("keep the number")
	b.click(".comment-new button.first")
	b.sees(".said-on .comment-text", "keep the number")
	u, err := docs.Unit(ctx, unit)
	must(t, err)
	if list := u.Unsent("b1"); len(list) != 1 || list[0].Quote != "    1" || !list[0].Old || list[0].Line != 3 {
		t.Errorf("%+v", list)
	}
	b.so("colors after the page was brought up to date", `!!document.querySelector(".diff .hljs-keyword")`)
	b.keys("m")
	b.so("a viewed file is closed", `!document.querySelector("details.file").open`)
	b.sized(390, 800, false)
	b.open("/decide?ref=review+blog/posts/b1")
	b.so("no scrolling sideways on a phone", `document.documentElement.scrollWidth <= innerWidth`)
	b.open("/unit/blog/posts")
	b.so("no scrolling sideways on the page of the unit", `document.documentElement.scrollWidth <= innerWidth`)
}
