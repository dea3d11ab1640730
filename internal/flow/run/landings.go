package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/store"
)

// landingsFile lists the landings of a batch that landed before it was tested. After a crash the
// next run of the batch undoes them and starts the batch again.
const landingsFile = "landings.json"

// noteLandings stores the landings of a batch, for the next run after a crash.
func (l *batchRun) noteLandings(ctx context.Context) error {
	_, err := l.folder.Write(context.WithoutCancel(ctx), landingsFile, struct {
		Landings []uint64 `json:"landings"`
	}{l.lands}, documents.About{By: l.p.opt.Actor.Name})
	return err
}

// notedLandings returns the landings that an earlier run of the batch stored.
func (l *batchRun) notedLandings(ctx context.Context) ([]uint64, error) {
	doc, err := l.folder.Read(ctx, landingsFile, func(body []byte) error { return json.Unmarshal(body, new(struct{ Landings []uint64 })) })
	if err != nil || doc == nil {
		return nil, err
	}
	var noted struct{ Landings []uint64 }
	return noted.Landings, json.Unmarshal(doc.Body, &noted)
}

func landings(list []uint64) string {
	if len(list) == 1 {
		return fmt.Sprintf("landing %d", list[0])
	}
	return "landings " + strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ", ")
}

// landingsOf finds the landings that wrote the present versions of files.
func (p *Pipeline) landingsOf(ctx context.Context, files []flow.File) (list []uint64, err error) {
	err = p.opt.Store.View(ctx, func(r store.Reader) error {
		list = nil
		var paths []string
		for _, f := range files {
			paths = append(paths, f.Path)
		}
		left, err := r.Landed("", paths...)
		for _, f := range files {
			if at, ok := left[f.Path]; ok && at.Version == f.New && !slices.Contains(list, at.Seq) {
				list = append(list, at.Seq)
			}
		}
		return err
	})
	slices.Sort(list)
	return list, err
}
