package hook

import (
	"context"
	"errors"
	"fmt"

	"lockkeeper/internal/config"
	"lockkeeper/internal/deferred"
	"lockkeeper/internal/session"
)

// compare shows what a command changed of what others hold.
func (v *visit) compare(ctx context.Context, began session.Call) error {
	list, err := v.seat.Compare(ctx, began, v.app.Config.Sessions.Uncovered == config.PutBack)
	for _, u := range list {
		v.out.tellBoth(uncovered(u))
	}
	return err
}

func uncovered(u session.Uncovered) string {
	did := "changed"
	if u.Gone {
		did = "removed"
	}
	text := fmt.Sprintf("UNCOVERED %s was %s while your command ran; it is %s.", u.Path, did, u.Holder)
	switch {
	case u.Doubt != "":
		text += " It may not have been you: " + u.Doubt + "."
	case u.Back:
		text += " It is again as its holder left it."
	}
	if u.NotBack != "" {
		text += " It could not be put back: " + u.NotBack + "."
	}
	if u.Rescue != "" {
		text += " The change is kept: lockkeeper rescue show " + u.Rescue + "."
	}
	return text + " Do not write it again."
}

// disturbed tells what somebody who asked nobody did to what the session holds.
func (v *visit) disturbed(ctx context.Context) error {
	list, err := v.seat.Disturbed(ctx)
	for _, d := range list {
		text := fmt.Sprintf("DISTURBED %s, which you hold, was changed by somebody who asked nobody: an editor, or an agent without hooks. Read it again before you go on.", d.Path)
		if d.Gone {
			text = fmt.Sprintf("DISTURBED %s, which you hold, was removed by somebody who asked nobody.", d.Path)
		}
		if d.Rescue != "" {
			text += " Your version is kept: lockkeeper rescue show " + d.Rescue + "."
		}
		v.out.tellBoth(text)
	}
	return err
}

// news tells what became free, and what became of patches that were deferred.
func (v *visit) news(ctx context.Context) error {
	free, err := v.seat.News(ctx)
	if v.out.Model = append(v.out.Model, free...); err != nil {
		return err
	}
	queue := deferred.Open(v.app)
	_, landing := queue.Land(ctx)
	ended, err := queue.News(v.call.Session)
	v.out.Model = append(v.out.Model, ended...)
	return errors.Join(landing, err)
}

// begin greets: what is free by now, and who is there.
func (v *visit) begin(ctx context.Context) error {
	if err := v.settle(ctx); err != nil {
		return err
	}
	if v.seat.New {
		s := v.seat.Session()
		v.out.Model = append(v.out.Model, fmt.Sprintf("Lockkeeper knows this session as %s. Files that you write are yours until the end of the turn; a refusal says what to do.", s.Callsign))
	}
	return v.news(ctx)
}

// settle compares what calls left whose end was not told, and looks at what the session
// holds.
func (v *visit) settle(ctx context.Context) error {
	began, err := v.seat.EndAll(ctx)
	if err != nil {
		return err
	}
	return errors.Join(v.compare(ctx, began), v.disturbed(ctx))
}

// stop compares once more, and gives everything back.
func (v *visit) stop(ctx context.Context) error {
	if err := v.settle(ctx); err != nil {
		return err
	}
	if err := v.seat.Release(ctx); err != nil {
		return err
	}
	_, err := deferred.Open(v.app).Land(ctx)
	return err
}
