package web

import (
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/surface/view"
)

type unitData struct{ *view.Unit }

func (u unitData) heading() string { return u.Name }

func (d *Dashboard) unitPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	u, err := d.view.Unit(r.Context(), r.URL.Query().Get("flow"), nameIn(r))
	if err != nil {
		return nil, missing(err)
	}
	return unitData{u}, nil
}

type landingData struct{ *view.LandingDetail }

func (l landingData) heading() string { return "Landing " + strconv.FormatUint(l.Landed.Seq, 10) }

func (d *Dashboard) landingPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	seq, err := strconv.ParseUint(r.PathValue("seq"), 10, 64)
	if err != nil {
		return nil, missing(&lockkeeper.InputError{Field: "landing", Value: r.PathValue("seq"), Reason: "not a number", Next: "go to Run, which lists the landings"})
	}
	l, err := d.view.Landing(r.Context(), seq)
	if err != nil {
		return nil, missing(err)
	}
	return landingData{l}, nil
}

type diffData struct{ *view.BatchChange }

func (b diffData) heading() string { return b.Unit + "/" + b.ID }

func (d *Dashboard) diffPage(_ http.ResponseWriter, r *http.Request) (any, error) {
	unit, batch := path.Split(nameIn(r))
	b, err := d.view.BatchChange(r.Context(), r.URL.Query().Get("flow"), strings.TrimSuffix(unit, "/"), batch)
	if err != nil {
		return nil, missing(err)
	}
	return diffData{b}, nil
}

// missingError is an error about a page whose subject does not exist.
type missingError struct{ error }

// Unwrap returns the cause.
func (e missingError) Unwrap() error { return e.error }

// Is reports that the error has the status of a missing file.
func (e missingError) Is(target error) bool { return target == fs.ErrNotExist }

// missing marks an error about an unknown name, so that the page has the status of a missing page.
func missing(err error) error {
	if lockkeeper.CodeOf(err) == lockkeeper.CodeInput {
		return missingError{err}
	}
	return err
}
