package mcp

import (
	"context"
	"fmt"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/acts"
)

type replaceInput struct {
	Dir       string   `json:"dir" jsonschema:"the directory to replace, from the root of the codebase or absolute"`
	From      string   `json:"from" jsonschema:"the directory in the codebase with the new content, which stays"`
	Operation string   `json:"operation" jsonschema:"the operation of lockkeeper.yaml that this is, such as generate-tiles"`
	Of        []string `json:"of,omitempty" jsonschema:"the resources that it works on, such as project/p1/map/m2"`
	Objects   int      `json:"objects,omitempty" jsonschema:"how many objects it changes"`
}

type replacedDir struct {
	answer
	Path    string `json:"path,omitempty"`
	Landed  bool   `json:"landed" jsonschema:"false without a refusal: the directory had this content already"`
	Landing uint64 `json:"landing,omitempty" jsonschema:"the number with which it can be undone"`
}

// replaceDir replaces a directory under the locks of an operation, which it holds for this call
// alone.
func replaceDir(ctx context.Context, v *call, in replaceInput) (out replacedDir, err error) {
	from := ""
	if out.Path, from, err = acts.Replacement(v.app, in.Dir, in.From); err != nil {
		return out, err
	}
	op, err := acts.FindOperation(v.app, in.Operation, resource.Args{Of: in.Of, Objects: in.Objects}, nil)
	if err != nil {
		return out, err
	}
	if err := v.within(ctx, "", func(*session.Session) error { return nil }); err != nil { // this call sets v.info
		return out, err
	}
	return out, op.Under(ctx, v.app, v.info.Callsign, func(ctx context.Context, grant *lockkeeper.Grant) error {
		l, err := landing.ReplaceDir(ctx, v.app, grant, out.Path, from)
		if l != nil {
			out.Landed, out.Landing = true, l.Seq
		}
		return err
	})
}

func (r *replacedDir) text() string {
	if !r.Landed {
		return shown(r.Path) + "/ had this content already."
	}
	return fmt.Sprintf("REPLACED %s/: landing %d.", shown(r.Path), r.Landing)
}
