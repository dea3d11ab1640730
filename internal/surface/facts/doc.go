// Package facts lists the facts of an error (paths, holders, reasons) under the names that
// JSON uses, so that every surface shows the same ones.
package facts
