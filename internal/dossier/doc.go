// Package dossier is under construction.
package dossier
