package conduct

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"lockkeeper/durable"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/project"
)

// Times of looking after a run that is conducted.
const (
	pauseEvery   = time.Second
	predictEvery = 30 * time.Second
	predictShare = 100 // a prediction takes at most this part of the time until the next one
)

// keepCurrent keeps the record of the run current until the returned function is called: how long the rest
// takes, and why nothing starts. It is the only writer of the record meanwhile.
func (r *ActiveRun) keepCurrent(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var pause run.Pause
		tick := time.NewTicker(pauseEvery)
		defer tick.Stop()
		for next := time.Now().Add(predictEvery); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := r.Paused()
			changed := now != pause
			var said *Prediction
			if !time.Now().Before(next) {
				began := time.Now()
				said, _ = predict(ctx, r.c.project.Config, r.Pipeline) // the first prediction warned about an error
				next = time.Now().Add(max(predictEvery, predictShare*time.Since(began)))
			}
			if !changed && said == nil {
				continue
			}
			err := changeRun(ctx, r.c.project, func(of *Run) {
				if of.Pause = nil; now != (run.Pause{}) {
					of.Pause = &now
				}
				if said != nil {
					of.Newest = said
				}
			})
			if err == nil {
				pause = now
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// predictionsKept is how many predictions of earlier runs are kept.
const predictionsKept = 20

// A KeptPrediction is a prediction of an earlier run that took some time.
type KeptPrediction struct {
	Flow string `json:"flow"`
	Prediction
}

func predictionsPath(a *project.Project) string {
	return filepath.Join(a.Below(project.DirName), "predictions.json")
}

// Predictions lists the predictions of earlier runs, the oldest first.
func Predictions(a *project.Project) ([]KeptPrediction, error) {
	list, err := durable.ReadJSON[[]KeptPrediction](predictionsPath(a))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return list, err
}

// keepPrediction adds the prediction of a run that ended to those of earlier runs.
func keepPrediction(ctx context.Context, a *project.Project, flowName string, p Prediction) error {
	list, err := Predictions(a)
	if err != nil {
		list = nil // it is only a record
	}
	list = append(list, KeptPrediction{flowName, p})
	return durable.WriteJSON(ctx, predictionsPath(a), list[max(0, len(list)-predictionsKept):], 0o600)
}
