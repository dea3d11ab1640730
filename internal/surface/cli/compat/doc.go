// Package compat has the commands that speak the formats of other tools: lease files,
// tidy sweeps, links, claims on the resources of a book, and the table of operations.
package compat
