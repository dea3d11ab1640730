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

// learnSite reads the id of this site, or makes one. The file says in which
// directory it was made: in a copy of a tree it is another one, and so is the site.
func (g *Gate) learnSite(state *os.File) error {
	self, err := g.disk.Lstat(state, ".")
	if err != nil {
		return err
	}
	mine := itoa(self.Inode)
	id, of, err := g.readSite(state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		id, err = g.makeSite(state, mine)
	case err == nil && of != mine:
		if err = g.disk.Remove(state, siteFile); err == nil || errors.Is(err, fs.ErrNotExist) {
			id, err = g.makeSite(state, mine)
		}
	}
	if err == nil {
		g.site = id + " " + g.opt.Site
	}
	return err
}

// readSite reads the id, and the directory it belongs to.
func (g *Gate) readSite(state *os.File) (id, of string, err error) {
	f, err := g.disk.OpenFile(state, siteFile)
	if err != nil {
		return "", "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 64))
	id, of, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
	return id, of, errors.Join(err, f.Close())
}

// makeSite puts the file in place whole, unless somebody else was quicker. A gate
// whose directories were removed keeps its id.
func (g *Gate) makeSite(state *os.File, of string) (string, error) {
	id, _, _ := strings.Cut(g.site, " ")
	if id == "" {
		id = newID()
	}
	temp := siteFile + "." + newID()
	f, err := g.disk.Create(state, temp)
	if err != nil {
		return "", err
	}
	err = errors.Join(g.disk.Write(f, []byte(id+" "+of+"\n")), g.disk.Sync(f), g.disk.Close(f))
	if err == nil {
		err = g.disk.Move(state, temp, state, siteFile)
	}
	if err == nil {
		return id, g.disk.Sync(state)
	}
	removed := g.disk.Remove(state, temp)
	if errors.Is(err, fs.ErrExist) && removed == nil {
		id, _, err = g.readSite(state)
		return id, err
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
