// Package flows has the commands of a run: run, decide, report, simulate and ask.
package flows
