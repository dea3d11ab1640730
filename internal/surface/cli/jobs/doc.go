// Package jobs has the commands of the queue: submit, work, list, and what follows.
package jobs
