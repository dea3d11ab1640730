// Package compat has the commands that speak the formats of other tools: lease files,
// tidy runs, links, claims on named resources, and the table of operations.
package compat
