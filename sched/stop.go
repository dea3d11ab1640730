package sched

import (
	"context"
	"slices"
	"sync"

	"lockkeeper"
)

// Pause stops the worker from starting items until Resume. Running items continue.
func (w *Worker) Pause() { w.turn(true) }

// Paused reports whether the worker is paused.
func (w *Worker) Paused() bool { return w.paused.Load() }

// Resume ends a pause.
func (w *Worker) Resume() { w.turn(false) }

func (w *Worker) turn(paused bool) {
	if w.paused.Swap(paused) != paused {
		w.rest.set(paused)
		select {
		case w.turned <- struct{}{}:
		default: // a signal is pending already
		}
	}
}

// Wait returns when the worker has ended: after Stop or Close, or because of UntilEmpty.
func (w *Worker) Wait() error {
	w.loop.Wait()
	w.cancel(errClosed)
	return w.err
}

// startNothing stops the worker from starting items, for good.
func (w *Worker) startNothing() {
	w.stop.Do(func() {
		close(w.quit)
		w.rest.end()
	})
}

// A rest is the time during which a worker starts nothing.
type rest struct {
	mu    sync.Mutex
	begun chan struct{} // closed while the worker rests
	on    bool
	ended bool // it rests for good
}

// begins returns a channel that is closed when the worker rests, or rests already.
func (r *rest) begins() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.channel()
}

func (r *rest) channel() chan struct{} {
	if r.begun == nil {
		r.begun = make(chan struct{})
	}
	return r.begun
}

func (r *rest) set(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	on = on || r.ended
	switch {
	case on && !r.on:
		close(r.channel())
	case !on && r.on:
		r.begun = nil
	}
	r.on = on
}

func (r *rest) end() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.set(true)
}

// Stop starts no more items and waits for the running ones. If ctx ends first, it returns the
// items that are still running, which continue. Queued items stay queued.
func (w *Worker) Stop(ctx context.Context) (still []lockkeeper.Item, err error) {
	w.startNothing()
	ended := make(chan struct{})
	go func() { // the goroutine ends at the latest with Close
		w.loop.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil, w.Wait()
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.running {
		still = append(still, at.item)
	}
	slices.SortFunc(still, func(a, b lockkeeper.Item) int { return lockkeeper.CompareItems(&a, &b) })
	return still, context.Cause(ctx)
}

// Close stops the worker, ends the running items and waits for them.
func (w *Worker) Close() error {
	w.startNothing()
	w.cancel(errClosed)
	return w.Wait()
}
