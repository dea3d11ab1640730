package gate

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"lockkeeper"
)

// siteFile holds the id of the disk that landings are on. Host names change, and so
// do paths; this file stays with the files.
const siteFile = "site"

// learnSite reads the id of this site, or makes one.
func (g *Gate) learnSite(state *os.File) error {
	id, err := g.readSite(state)
	if errors.Is(err, fs.ErrNotExist) {
		id, err = g.makeSite(state)
	}
	if err == nil {
		g.site = id + " " + g.opt.Site
	}
	return err
}

func (g *Gate) readSite(state *os.File) (string, error) {
	f, err := g.disk.OpenFile(state, siteFile)
	if err != nil {
		return "", err
	}
	id, err := io.ReadAll(io.LimitReader(f, 64))
	return strings.TrimSpace(string(id)), errors.Join(err, f.Close())
}

// makeSite puts the file in place whole, unless somebody else was quicker. A gate
// whose directories were removed keeps its id.
func (g *Gate) makeSite(state *os.File) (string, error) {
	id, _, _ := strings.Cut(g.site, " ")
	if id == "" {
		id = newCommit()
	}
	draft := siteFile + "." + newCommit()
	f, err := g.disk.Create(state, draft)
	if err != nil {
		return "", err
	}
	err = errors.Join(g.disk.Write(f, []byte(id+"\n")), g.disk.Sync(f), g.disk.Close(f))
	if err == nil {
		err = g.disk.Move(state, draft, state, siteFile)
	}
	if err == nil {
		return id, g.disk.Sync(state)
	}
	removed := g.disk.Remove(state, draft)
	if errors.Is(err, fs.ErrExist) && removed == nil {
		return g.readSite(state)
	}
	return "", errors.Join(err, removed)
}

// isHere reports whether the files of a landing are on this disk.
func (g *Gate) isHere(l *lockkeeper.Landing) bool {
	here, _, _ := strings.Cut(g.site, " ")
	there, _, _ := strings.Cut(l.Site, " ")
	return here == there
}

// siteOf is where the files of a landing are, for people.
func siteOf(l *lockkeeper.Landing) string {
	_, name, _ := strings.Cut(l.Site, " ")
	return name
}
