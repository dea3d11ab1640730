// Package facts returns what an error knows beside its class and its sentence, under the
// names that JSON uses. Every surface shows the same facts.
package facts
