package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/job"
	"lockkeeper/internal/session"
	"lockkeeper/sched"
)

// longestReason is the maximum length of a reason, in bytes.
const longestReason = 4_000

func reasonOf(text string) (string, error) {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	switch {
	case text == "":
		return "", &lockkeeper.InputError{Field: "reason", Reason: "required", Next: "say why the change is needed"}
	case len(text) > longestReason:
		return "", &lockkeeper.InputError{Field: "reason", Reason: fmt.Sprintf("longer than %d bytes", longestReason), Next: "shorten it"}
	}
	return text, nil
}

type gapInput struct {
	Path   string `json:"path" jsonschema:"the file that needs a change, from the root of the codebase or absolute"`
	Reason string `json:"reason" jsonschema:"why the change is needed"`
}

type recorded struct {
	answer
	Path   string `json:"path,omitempty"`
	Rescue string `json:"rescue,omitempty" jsonschema:"id of the record"`
}

func reportGap(ctx context.Context, v *call, in gapInput) (out recorded, err error) {
	if out.Path, err = v.file(in.Path); err != nil {
		return out, err
	}
	reason, err := reasonOf(in.Reason)
	if err != nil {
		return out, err
	}
	err = v.within(ctx, "", func(sess *session.Session) (err error) {
		out.Rescue, err = v.gap(ctx, sess, out.Path, reason)
		return err
	})
	return out, err
}

func (r *recorded) text() string {
	return fmt.Sprintf("RECORDED that %s needs a change (%s). A person will see it; continue with the files you have.", shown(r.Path), r.Rescue)
}

// gap records that a session needs a file.
func (v *call) gap(ctx context.Context, sess *session.Session, path, reason string) (string, error) {
	g, err := v.app.Gate()
	if err != nil {
		return "", err
	}
	who := sess.Info()
	e, err := g.Refuse(ctx, &lockkeeper.Grant{ID: who.GrantID}, gate.Change{Path: path}, fmt.Errorf("requested by %s (%s): %s", who.Callsign, who.Agent, reason))
	return e.ID, err
}

type moreInput struct {
	Paths  []string `json:"paths" jsonschema:"the files you need, from the root of the codebase or absolute"`
	Reason string   `json:"reason" jsonschema:"why you need them"`
}

type asked struct {
	answer
	Gaps []recordedGap `json:"gaps,omitempty"`
	Item string        `json:"item,omitempty" jsonschema:"the item in the queue that a person decides about"`
}

type recordedGap struct {
	Path   string `json:"path"`
	Rescue string `json:"rescue"`
}

// askForMore records a request as gaps, and as a queue item that waits for a person. The
// caller's grant does not change.
func askForMore(ctx context.Context, v *call, in moreInput) (out asked, err error) {
	paths, err := v.files(in.Paths)
	if err != nil {
		return out, err
	}
	reason, err := reasonOf(in.Reason)
	if err != nil {
		return out, err
	}
	err = v.within(ctx, "", func(sess *session.Session) error {
		for _, p := range paths {
			id, err := v.gap(ctx, sess, p, reason)
			if err != nil {
				return err
			}
			out.Gaps = append(out.Gaps, recordedGap{p, id})
		}
		out.Item, err = v.followUp(ctx, sess.Info(), paths, reason)
		return err
	})
	return out, err
}

func (a *asked) text() string {
	var paths []string
	for _, g := range a.Gaps {
		paths = append(paths, g.Path)
	}
	return fmt.Sprintf("ASKED for %s: follow-up item %s waits for a person. Your claims have not changed; continue with the files you have.", listed(paths), a.Item)
}

// followUp queues a request for files. The item goes to the error state, so no worker starts
// it and a person sees it. Repeating a request queues nothing.
func (v *call) followUp(ctx context.Context, who session.Info, paths []string, reason string) (string, error) {
	q, err := job.Open(v.app)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(append(slices.Sorted(slices.Values(paths)), who.ID, reason), "\x00")))
	key := "follow-up-" + hex.EncodeToString(sum[:8])
	if known, err := q.Find(ctx, key); err != nil || known != nil {
		if known != nil {
			return known.ID, nil
		}
		return "", err
	}
	by := lockkeeper.Actor{Name: who.Callsign, Kind: lockkeeper.ActorAgent}
	var locks []lockkeeper.Lock
	for _, p := range paths {
		locks = append(locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: p, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
	}
	items, err := q.Enqueue(ctx, sched.ItemSpec{Key: key, Workflow: "follow-up of " + who.Callsign, Locks: locks, By: by, Person: reason})
	if err != nil {
		return "", err
	}
	return items[0].ID, nil
}
