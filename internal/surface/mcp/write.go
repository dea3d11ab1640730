package mcp

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/deferred"
)

type writeInput struct {
	Path   string  `json:"path" jsonschema:"the file, from the root of the codebase or absolute"`
	Text   *string `json:"text,omitempty" jsonschema:"the whole new content"`
	Base64 string  `json:"base64,omitempty" jsonschema:"the whole new content in base64, for binary files"`
	Delete bool    `json:"delete,omitempty" jsonschema:"delete the file instead"`
	Base   string  `json:"base,omitempty" jsonschema:"the content that the file must have now: its SHA-256 in hex, or nothing if the file must not exist"`
}

type written struct {
	answer
	Path    string `json:"path,omitempty"`
	Landed  bool   `json:"landed" jsonschema:"false without a refusal: the file had this content already"`
	Landing uint64 `json:"landing,omitempty" jsonschema:"the number with which it can be undone"`
	Version string `json:"version,omitempty" jsonschema:"the version of the file now"`
}

// write claims a file and writes it through the gate. With a base, the gate checks that the
// file still has it. Without one, the session must have read the file.
func write(ctx context.Context, v *call, in writeInput) (out written, err error) {
	path, err := v.file(in.Path)
	if err != nil {
		return out, err
	}
	change, err := in.change(v, path)
	if err != nil {
		return out, err
	}
	call := "mcp write " + path // the path is included because a client can run several writes at once
	out.Path = path
	err = v.within(ctx, "", func(sess *session.Session) (err error) {
		out.Refused, err = sess.Claim(ctx, session.Write{Path: path, Whole: change.Base == nil})
		if err != nil || len(out.Refused) > 0 {
			return err
		}
		if err := sess.Writable(ctx, false, path); err != nil {
			return err
		}
		return sess.Begin(call, session.Call{Writes: []string{path}}) // others see who changes the file
	})
	if err != nil || len(out.Refused) > 0 {
		return out, err
	}
	done, err := landing.Apply(ctx, v.app, v.info.GrantID, []gate.Change{change}, true)
	if err == nil {
		out.Landed, out.Version = done.Files[0].Landed, done.Files[0].Version.String()
		if done.Landing != nil {
			out.Landing = done.Landing.Seq
		}
	}
	left := v.within(context.WithoutCancel(ctx), "", func(sess *session.Session) error {
		began := sess.End(call, false)
		if err != nil {
			return nil
		}
		ctx := context.WithoutCancel(ctx)
		if err := sess.Left(ctx, began, []string{path}); err != nil {
			return err
		}
		return sess.Saw(ctx, path, func([]byte) bool { return true }) // the session knows the whole file
	})
	return out, errors.Join(err, left)
}

func (in writeInput) change(v *call, path string) (c gate.Change, err error) {
	c = gate.Change{Path: path, Delete: in.Delete}
	switch text, binary := in.Text != nil, in.Base64 != ""; {
	case text && binary, in.Delete && (text || binary):
		return c, &lockkeeper.InputError{Field: "text", Reason: "text, base64 and delete exclude each other", Next: "give one of text, base64 and delete"}
	case text:
		c.Body = gate.Bytes([]byte(*in.Text))
	case binary:
		content, err := base64.StdEncoding.DecodeString(in.Base64)
		if err != nil {
			return c, &lockkeeper.InputError{Field: "base64", Reason: err.Error(), Next: "send the content in base64, or as text"}
		}
		c.Body = gate.Bytes(content)
	case !in.Delete:
		return c, &lockkeeper.InputError{Field: "text", Reason: "required", Next: "give the whole new content, or delete"}
	}
	if in.Base != "" {
		c.Base, err = landing.ParseBase(v.app, path, in.Base)
	}
	return c, err
}

func (w *written) text() string {
	switch {
	case len(w.Refused) > 0 && w.Refused[0].Holder == nil:
		return shown(w.Path) + " was not written. To replace it, read it and give the SHA-256 of its content as base."
	case w.isRefusal():
		return shown(w.Path) + " was not written."
	case !w.Landed:
		return shown(w.Path) + " had this content already."
	}
	return fmt.Sprintf("WROTE %s: landing %d, now %s.", shown(w.Path), w.Landing, w.Version)
}

type deferInput struct {
	Path    string  `json:"path" jsonschema:"the file, from the root of the codebase or absolute"`
	Patch   string  `json:"patch,omitempty" jsonschema:"a unified diff of this file against its current content"`
	Content *string `json:"content,omitempty" jsonschema:"the whole new content instead"`
	Base    string  `json:"base,omitempty" jsonschema:"the content that the file must have: its SHA-256 in hex; default: what your session has read"`
}

type postponed struct {
	answer
	ID    string         `json:"id,omitempty"`
	Path  string         `json:"path,omitempty"`
	State deferred.State `json:"state,omitempty" jsonschema:"queued; the result comes as news"`
}

func deferPatch(ctx context.Context, v *call, in deferInput) (out postponed, err error) {
	path, err := v.file(in.Path)
	if err != nil {
		return out, err
	}
	if (in.Patch == "") == (in.Content == nil) {
		return out, &lockkeeper.InputError{Field: "patch", Reason: "give either a patch or the content", Next: "send a unified diff of " + path}
	}
	text := in.Patch
	if in.Content != nil {
		text = *in.Content
	}
	base := in.Base
	err = v.within(ctx, "", func(sess *session.Session) error { // this call sets v.info
		base = cmp.Or(base, sess.Known(path))
		return nil
	})
	if err != nil {
		return out, err
	}
	patch := deferred.Patch{Path: v.at(path), By: v.info.Callsign, Session: v.info.ID}
	if base != "" {
		known, err := landing.ParseBase(v.app, path, base)
		if err != nil {
			return out, err
		}
		patch.Base = *known
	}
	patch, err = v.later.Put(ctx, patch, []byte(text), in.Content != nil)
	out.ID, out.Path, out.State = patch.ID, path, patch.State
	return out, err
}

func (p *postponed) text() string {
	return fmt.Sprintf("DEFERRED %s (%s): it lands when the file is free; you will be told.", shown(p.Path), p.ID)
}
