// Package jobs has the commands of the queue: job submit, work, list, retry, cancel and output.
package jobs
