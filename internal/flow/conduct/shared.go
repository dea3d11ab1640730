package conduct

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
)

// Fleet returns the machines that work on the codebase together, or nil if there is only one.
func Fleet(a *project.Project) *fleet.Fleet {
	if a.Config.Deployment != config.MultiNode {
		return nil
	}
	return fleet.Open(a.Store)
}

// Elsewhere returns the run that another copy of the codebase conducts now, or nil.
func Elsewhere(ctx context.Context, a *project.Project) (*fleet.Run, error) {
	f := Fleet(a)
	if f == nil {
		return nil, nil
	}
	r, err := f.Run(ctx)
	if err != nil || r == nil {
		return nil, err
	}
	if lives, err := conducts(ctx, a, r); !lives || err != nil {
		return nil, err
	}
	g, err := a.Gate()
	if err != nil || r.Site == g.SiteID() {
		return nil, err
	}
	return r, nil
}

// Machines lists the machines that share the calls of the run, the conductor first. It returns nil if
// all calls run here.
func Machines(ctx context.Context, a *project.Project) ([]fleet.Machine, error) {
	f := Fleet(a)
	if f == nil {
		return nil, nil
	}
	return f.Machines(ctx)
}

// PlanSum returns the SHA-256 of a plan file.
func PlanSum(path string) (string, error) {
	text, err := os.ReadFile(path)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// A sharedRun shows a run to the other machines. All methods accept nil.
type sharedRun struct {
	fleet *fleet.Fleet
	tell  func(run.News)

	replica *replica // nil: no other machine can continue the run

	mu   sync.Mutex
	post fleet.Run

	warned map[string]time.Time // when an error was told last
}

// share announces a run that begins. It returns nil if no other machine works on the codebase.
func share(ctx context.Context, c *Conductor, grant string) (*sharedRun, error) {
	f := Fleet(c.project)
	if f == nil {
		return nil, nil
	}
	g, err := c.project.Gate()
	if err != nil {
		return nil, err
	}
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	last, err := CurrentRun(c.project)
	if err != nil {
		return nil, err
	}
	s := &sharedRun{fleet: f, tell: c.opt.Tell, warned: map[string]time.Time{}, post: fleet.Run{ID: last.ID, Flow: last.Flow, Plan: last.Plan, Began: last.Began,
		Machine: "m" + rand.Text()[:16], Name: self.Host, Root: c.project.Root.Dir(), Site: g.SiteID(), Grant: grant}}
	if last.Plan != "" {
		if s.post.PlanSum, err = PlanSum(last.Plan); err != nil {
			return nil, err
		}
	}
	s.replica = newReplica(c, s.post.Machine)
	return s, f.TakeRun(ctx, &s.post)
}

// publishEvery is how often other machines see the state of a run.
const publishEvery = 2 * time.Second

// publish stores the state of the run until the returned function is called. If another machine
// conducts the run, publish ends it here.
func (s *sharedRun) publish(ctx context.Context, p *run.Pipeline, end context.CancelCauseFunc) (stop func()) {
	if s == nil {
		return func() {}
	}
	if s.replica != nil {
		s.replica.crew.Publish = func(ctx context.Context) error { return s.publishDocuments(ctx, p) }
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		wait := time.NewTimer(0)
		defer wait.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-wait.C:
			}
			began := time.Now()
			if out, err := p.Outcome(ctx); err == nil { // the run reports errors of documents
				s.set(out)
			}
			if err := s.put(ctx); errors.Is(err, errTaken) {
				end(err)
				return
			} else if err != nil {
				s.warn(ctx, "other machines do not see the state of the run: "+err.Error())
			}
			if err := s.publishDocuments(ctx, p); err != nil && !errors.Is(err, errTaken) {
				s.warn(ctx, "another machine could not continue the run: "+err.Error())
			}
			wait.Reset(max(publishEvery, 5*time.Since(began)))
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// warnEvery is the shortest time between two reports of the same error.
const warnEvery = time.Minute

func (s *sharedRun) warn(ctx context.Context, text string) {
	if ctx.Err() != nil || s.tell == nil || time.Since(s.warned[text]) < warnEvery {
		return
	}
	s.warned[text] = time.Now()
	s.tell(run.News{At: time.Now(), Kind: run.NewsWarning, Text: text})
}

var errTaken = errors.New("another machine conducts the run")

func (s *sharedRun) set(out *run.Outcome) {
	text, err := json.Marshal(out)
	if err != nil { // cannot happen: an outcome has only strings and numbers
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post.State = text
}

func (s *sharedRun) put(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok, err := s.fleet.PutRun(ctx, &s.post)
	if err == nil && !ok {
		err = errTaken
	}
	return err
}

// ended stores the outcome of the run.
func (s *sharedRun) ended(out *run.Outcome) {
	if s != nil {
		s.set(out)
	}
}

// close says that this machine no longer conducts. After it lost the conductor's lock, another machine
// continues the run.
func (s *sharedRun) close(ctx context.Context, ended bool) error {
	if s == nil || !ended {
		return nil
	}
	s.mu.Lock()
	s.post.Ended = time.Now().UTC()
	s.mu.Unlock()
	if err := s.put(ctx); err != nil && !errors.Is(err, errTaken) {
		return fmt.Errorf("tell the other machines that the run has ended: %w", err)
	}
	if err := s.dropDocuments(ctx); err != nil {
		s.warn(ctx, "old documents of the run stay at the git remote: "+err.Error())
	}
	return nil
}
