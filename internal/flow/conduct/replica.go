package conduct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper/durable"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/git/parcel"
	"lockkeeper/internal/project"
)

// Names in the commit with the documents of a run.
const (
	runEntry       = "run.json"  // a replicated run
	documentsEntry = "documents" // run.sidecar_dir
	analysisEntry  = "analysis"  // run.analysis_dir
	callsEntry     = "calls"     // callsDir
	stateEntry     = "state"     // other files of .lockkeeper
	planEntry      = "plan"      // the plan and the files that it names
)

// A replicated run is what another conductor needs to know about a run, besides its files.
type replicated struct {
	Run     Run     `json:"run"`
	Options Options `json:"options"`
	Plan    string  `json:"plan,omitempty"` // the name of the plan below planEntry
}

// A replica publishes the documents and calls of a run as commits at the git remote, from where another
// machine can continue it.
type replica struct {
	project *project.Project
	opt     Options
	crew    *run.Crew
	keeper  *parcel.Keeper
	id      string // names the refs

	turn  sync.Mutex // held by who publishes
	begun int        // how many publications have begun

	count int // number of pushed commits
}

func newReplica(c *Conductor, id string) *replica {
	if c.parts.Crew == nil {
		return nil
	}
	return &replica{project: c.project, opt: c.opt, crew: c.parts.Crew, keeper: c.parts.Crew.Parcels.NewKeeper(), id: id}
}

// skipped reports whether a file of documents or calls is of this machine only.
func skipped(rel string) bool {
	name := filepath.Base(rel)
	return name == ".lock" || strings.HasPrefix(name, durable.TempPrefix) || strings.HasSuffix(name, ".new")
}

// commit makes the commit of what is on this disk. The calls come first: a call is marked as used after
// its document is stored.
func (r *replica) commit(ctx context.Context) (string, error) {
	a := r.project
	current, err := CurrentRun(a)
	if err != nil || current == nil {
		return "", err
	}
	about := replicated{Run: *current, Options: r.opt}
	about.Run.Conductor, about.Run.Prediction = nil, nil // of this machine, and of this process
	about.Options.New, about.Options.Retry = false, false
	files := map[string][]byte{}
	if current.Plan != "" {
		if about.Plan, err = addPlan(files, current.Plan); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(about)
	if err != nil {
		return "", err
	}
	files[runEntry] = text
	c := a.Config.Run
	return r.keeper.Keep(ctx, []parcel.Kept{
		{Name: callsEntry, Dir: a.Below(callsDir), Skip: skipped},
		{Name: documentsEntry, Dir: a.Below(c.SidecarDir), Skip: skipped},
		{Name: analysisEntry, Dir: a.Below(c.AnalysisDir), Skip: skipped},
		{Name: stateEntry, Dir: a.Below(project.DirName), Skip: func(rel string) bool { return rel != filepath.Base(baselineFile) }},
	}, files, "documents of run "+current.ID)
}

// addPlan adds a plan and the files that it names.
func addPlan(files map[string][]byte, path string) (name string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	name = filepath.Base(path)
	files[planEntry+"/"+name] = text
	plan, err := flow.ReadTasks(name, text)
	if err != nil {
		return "", err
	}
	for _, t := range plan.Tasks {
		if t.PromptFile == "" {
			continue
		}
		said, err := readBeside(path, t.PromptFile)
		if err != nil {
			return "", err
		}
		files[planEntry+"/"+filepath.ToSlash(filepath.Clean(t.PromptFile))] = said
	}
	return name, nil
}

// publishDocuments makes what is on this disk reachable, unless another goroutine began to do so after this
// call.
func (s *sharedRun) publishDocuments(ctx context.Context, p *run.Pipeline) (err error) {
	if s == nil || s.replica == nil {
		return nil
	}
	r := s.replica
	s.mu.Lock()
	asked := r.begun
	s.mu.Unlock()
	r.turn.Lock()
	defer r.turn.Unlock()
	s.mu.Lock()
	done := r.begun > asked
	if !done {
		r.begun++
	}
	s.mu.Unlock()
	if done {
		return nil
	}
	settled := p.TakeSettled()
	defer func() {
		if err != nil {
			p.PutSettled(settled)
		}
	}()
	commit, err := r.commit(ctx)
	if err != nil || commit == "" {
		return err
	}
	s.mu.Lock()
	was, had := s.post.Ref, s.post.Documents
	s.mu.Unlock()
	if commit != had {
		r.count++
		ref := r.crew.Ref(run.StateKind, fmt.Sprintf("%s/%d", r.id, r.count))
		if err := r.crew.Parcels.Push(ctx, r.crew.Remote, commit, ref); err != nil {
			return err
		}
		s.mu.Lock()
		s.post.Documents, s.post.Ref = commit, ref
		s.mu.Unlock()
		if err := s.put(ctx); err != nil {
			return err
		}
		if err := r.dropOthers(ctx, ref, was); err != nil {
			return err
		}
	}
	list := settled
	settled = nil // a call that could not be removed is removed by a later run
	return p.ForgetCalls(ctx, list)
}

// dropOthers removes the refs of earlier publications, at first also those of other conductors.
func (r *replica) dropOthers(ctx context.Context, ref, was string) (err error) {
	var gone []string
	if r.count == 1 {
		if gone, err = r.crew.Parcels.Refs(ctx, r.crew.Remote, r.crew.Ref(run.StateKind, "")); err != nil {
			return err
		}
	} else if was != "" {
		gone = []string{was}
	}
	gone = slices.DeleteFunc(gone, func(other string) bool { return other == ref })
	if len(gone) == 0 {
		return nil
	}
	return r.crew.Parcels.Drop(ctx, r.crew.Remote, gone...)
}

// dropDocuments removes the published documents of a run that has ended, unless an earlier conductor
// needs them: it knows an older state.
func (s *sharedRun) dropDocuments(ctx context.Context) error {
	if s == nil || s.replica == nil {
		return nil
	}
	s.mu.Lock()
	ref := s.post.Ref
	if len(s.post.Earlier) > 0 {
		s.mu.Unlock()
		return nil
	}
	s.post.Documents, s.post.Ref = "", ""
	s.mu.Unlock()
	if ref == "" {
		return nil
	}
	return s.replica.crew.Parcels.Drop(ctx, s.replica.crew.Remote, ref)
}

// restore writes the documents and calls of a commit on this disk. What was there is moved to a directory
// of replaced files.
func restore(ctx context.Context, a *project.Project, repo *parcel.Repo, commit string) (about replicated, err error) {
	temp, err := os.MkdirTemp(a.Below(project.DirName), "taken-")
	if err != nil {
		return about, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	from := filepath.Join(temp, "files")
	if err := repo.Extract(ctx, commit, from); err != nil {
		return about, err
	}
	if about, err = durable.ReadJSON[replicated](filepath.Join(from, runEntry)); err != nil {
		return about, err
	}
	if err := forgetWorkspaces(filepath.Join(from, callsEntry)); err != nil {
		return about, err
	}
	replaced := a.Below(filepath.Join(project.DirName, "replaced", time.Now().UTC().Format("20060102T150405.000")))
	c := a.Config.Run
	for name, to := range map[string]string{documentsEntry: c.SidecarDir, analysisEntry: c.AnalysisDir, callsEntry: callsDir, stateEntry + "/" + filepath.Base(baselineFile): baselineFile} {
		if err := exchange(filepath.Join(from, filepath.FromSlash(name)), a.Below(to), filepath.Join(replaced, filepath.FromSlash(name))); err != nil {
			return about, err
		}
	}
	about.Run.Plan = ""
	if about.Plan != "" {
		if !filepath.IsLocal(about.Plan) || about.Plan != filepath.Base(about.Plan) {
			return about, fmt.Errorf("the plan of the run has the name %q", about.Plan)
		}
		dir := a.Below(filepath.Join(project.DirName, "plans", about.Run.ID))
		if err := exchange(filepath.Join(from, planEntry), dir, filepath.Join(replaced, planEntry)); err != nil {
			return about, err
		}
		about.Run.Plan = filepath.Join(dir, about.Plan)
	}
	return about, durable.WriteJSON(ctx, runPath(a), about.Run, 0o600)
}

// exchange moves from to a path, and what is there to a third. A missing from only moves that.
func exchange(from, to, replaced string) error {
	if err := os.MkdirAll(filepath.Dir(replaced), 0o700); err != nil {
		return err
	}
	if err := os.Rename(to, replaced); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// forgetWorkspaces makes the records of calls name no workspace, because those are on the other machine.
func forgetWorkspaces(calls string) error {
	list, err := filepath.Glob(filepath.Join(calls, "*", "*", run.WorkspaceFile))
	if err != nil {
		return err
	}
	for _, path := range slices.Compact(list) {
		if err := os.Truncate(path, 0); err != nil {
			return err
		}
	}
	return nil
}
