package api

import (
	"path/filepath"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/surface/acts"
)

// runRoutes returns the routes that start and stop runs. Two of them have the URLs that the documents use.
func runRoutes() []route {
	phase := act("/pipeline/{phase}/{unit...}", operators, "Start a phase of a unit.", func(s *Server, c *call, _ nothing) (phaseStarted, error) {
		return s.startPhase(c, c.r.PathValue("phase"))
	})
	return []route{
		phase,
		phase.under(api),
		act("/analyze/{unit...}", operators, "Start the analysis of a unit: /pipeline/analyze by its older name.", func(s *Server, c *call, _ nothing) (phaseStarted, error) {
			return s.startPhase(c, "analyze")
		}),
		ask(api+"/run/state", viewers, "What this server conducts, or how its last run ended.", func(s *Server, _ *call, _ nothing) (acts.Running, error) {
			return s.opt.Runs.Now(), nil
		}),
		act(api+"/run/start", operators, "Begin a run, or go on with it.", startRun),
		act(api+"/run/stop", operators, "Have the run end: once what its agents do is finished, or, with now, at once.", stopRun),
	}
}

// phaseStarted is the response to the start of a phase.
type phaseStarted struct {
	Unit  string `json:"unit"`
	Phase string `json:"phase"`
}

func (s *Server) startPhase(c *call, phase string) (phaseStarted, error) {
	unit := c.r.PathValue("unit")
	return phaseStarted{unit, phase}, s.opt.Runs.Phase(c.r.Context(), unit, phase, c.who.Actor())
}

func startRun(s *Server, c *call, in conduct.Options) (acts.Started, error) {
	if in.Plan != "" && !filepath.IsLocal(filepath.FromSlash(in.Plan)) {
		return acts.Started{}, &lockkeeper.InputError{Field: "plan", Value: in.Plan, Reason: "not a file below the root", Next: "name one by its path from the root"}
	}
	in.By = c.who.Actor()
	return s.opt.Runs.Start(c.r.Context(), in)
}

func stopRun(s *Server, c *call, in acts.StopOptions) (acts.Running, error) {
	if err := s.opt.Runs.Stop(c.r.Context(), in, c.who.Actor()); err != nil {
		return acts.Running{}, err
	}
	return s.opt.Runs.Now(), nil
}
