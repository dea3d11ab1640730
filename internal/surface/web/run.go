package web

import (
	"net/http"
	"strconv"

	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

// rowsOfRun is how many rows each list of the page of a run has.
const rowsOfRun = 25

type runData struct {
	*view.Run
	Conducts *acts.Running
	Warnings []run.News // warnings of this server's run, newest first

	Landings []view.Landing // those that are shown
	Older    string         // URL of earlier landings
	Newest   string         // URL of the latest landings; empty: they are shown

	Failures     []report.Failure
	FailurePages pager
	Units        []report.Unit
	UnitPages    pager
	Refused      []view.RefusedWrite
	RefusedPages pager
}

func (d *Dashboard) runPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	run, err := d.view.Run(r.Context(), r.URL.Query().Get("flow"))
	if err != nil {
		return nil, err
	}
	data := runData{Run: run}
	if d.runs != nil {
		running := d.runs.Now()
		data.Conducts, data.Warnings = &running, running.Told(run.Line.Flow)
	}
	if err := d.landingsOfPage(&data, r); err != nil {
		return nil, err
	}
	if run.Report != nil {
		if data.Failures, data.FailurePages, err = pagedBy(run.Report.Failures, r, "failures", rowsOfRun); err != nil {
			return nil, err
		}
		if data.Units, data.UnitPages, err = pagedBy(run.Report.Units, r, "units", rowsOfRun); err != nil {
			return nil, err
		}
	}
	data.Refused, data.RefusedPages, err = pagedBy(run.Refused, r, "refused", rowsOfRun)
	return data, err
}

// landingsOfPage adds the latest landings, or those before the one in the query.
func (d *Dashboard) landingsOfPage(data *runData, r *http.Request) error {
	const before = "landings"
	seq, err := pageNumber(r.URL.Query().Get(before))
	if err != nil {
		return err
	}
	list, more := data.Run.Landings, data.More
	if seq > 0 {
		page, err := d.view.Landings(r.Context(), view.LandingsQuery{Before: seq, Limit: rowsOfRun})
		if err != nil {
			return err
		}
		list, more = page.Landings, page.Next != 0
		data.Newest = changedAddress(r, before, "")
	}
	if len(list) > rowsOfRun {
		list, more = list[:rowsOfRun], true
	}
	if more && len(list) > 0 {
		data.Older = changedAddress(r, before, strconv.FormatUint(list[len(list)-1].Seq, 10))
	}
	data.Landings = list
	return nil
}
