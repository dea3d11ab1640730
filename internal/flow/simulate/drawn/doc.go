// Package drawn draws plans of the size of a large Rails application, for tests and benchmarks of
// the scheduler.
package drawn
