package web

import (
	"net/http"

	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

// runData is the data of the page Run.
type runData struct {
	*view.Run
	Conducts *acts.Running
	Warnings []run.News // warnings of this server's run, newest first
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
	return data, nil
}
