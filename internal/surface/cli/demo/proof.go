package demo

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"lockkeeper"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// A proof is the result of prove. A collision is any violation of the rules that prove checks.
type proof struct {
	Landed     int      `json:"writes_landed"`  // number of landed changes of files
	Refused    int      `json:"writes_refused"` // number of refused writes, whose content was kept
	Collisions []string `json:"collisions"`     // the collisions, each in a sentence
}

// prove checks the event log in order. before and now are the files of the codebase, by path.
//
//   - No two grants hold conflicting locks at the same time.
//   - Every landing was decided while its grant was held, and its grant held exactly the
//     paths that it changed, for writing.
//   - Every landing found the content that the landing before it left, so none overwrote
//     another, and the files now have the content that the last one left.
//   - No other file changed.
func prove(rec *view.Record, before, now map[string]lockkeeper.Version) *proof {
	p := &proof{Collisions: []string{}}
	held := map[string][]lockkeeper.Lock{}
	decided := map[uint64]*lockkeeper.Landing{}
	for _, l := range rec.Landings {
		decided[l.Seq] = l
	}
	left := maps.Clone(before)
	for _, ev := range rec.Events {
		switch ev.Kind {
		case lockkeeper.EventAcquired, lockkeeper.EventExtended, lockkeeper.EventUpgraded:
			p.apart(ev, held)
			held[ev.GrantID] = append(slices.Clone(held[ev.GrantID]), ev.Locks...)
		case lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased:
			delete(held, ev.GrantID)
		case lockkeeper.EventGap:
			p.Refused++
		case lockkeeper.EventLanded:
			if l := decided[ev.Seq]; l == nil {
				p.collision("landing %d by %s is not in the log", ev.Seq, ev.Holder)
			} else if l.State != lockkeeper.Undone {
				p.covered(l, held[l.GrantID], left)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(merged(left, now))) {
		if left[path] != now[path] {
			p.collision("%s is not what the last landing left", path)
		}
	}
	return p
}

func (p *proof) collision(format string, facts ...any) {
	p.Collisions = append(p.Collisions, fmt.Sprintf(format, facts...))
}

// apart records a collision if a grant gets a lock that conflicts with another grant.
func (p *proof) apart(ev lockkeeper.Event, held map[string][]lockkeeper.Lock) {
	for id, others := range held {
		if id == ev.GrantID {
			continue
		}
		for _, got := range ev.Locks {
			for _, has := range others {
				if got.Conflicts(has) {
					p.collision("%s acquired %s in event %d while grant %s held %s", ev.Holder, got, ev.Seq, id, has)
				}
			}
		}
	}
}

// covered checks a landing against its grant and against the content before it.
func (p *proof) covered(l *lockkeeper.Landing, held []lockkeeper.Lock, left map[string]lockkeeper.Version) {
	for _, c := range l.Changes {
		p.Landed++
		holds := slices.ContainsFunc(held, func(has lockkeeper.Lock) bool { return has.Mode == lockkeeper.Write && has.Path == c.Path })
		if !holds {
			p.collision("landing %d changed %s, which grant %s did not hold", l.Seq, c.Path, l.GrantID)
		}
		if left[c.Path] != c.Old {
			p.collision("landing %d found content in %s that no landing had left", l.Seq, c.Path)
		}
		left[c.Path] = c.New
		if !c.New.Exists() {
			delete(left, c.Path)
		}
	}
}

func merged[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func (p *proof) String() string {
	return fmt.Sprintf("writes landed %d, writes refused %d, collisions %d", p.Landed, p.Refused, len(p.Collisions))
}

// photo is the content of all files of a small codebase, by path.
type photo map[string]photographed

type photographed struct {
	mode fs.FileMode
	text []byte
}

// photograph reads all files below a directory, except in folders whose names start with a dot.
func photograph(dir string) (photo, error) {
	all := photo{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		path, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		all[filepath.ToSlash(path)] = photographed{info.Mode().Perm(), text}
		return err
	})
	return all, err
}

// versions returns the files as versions, as in landings.
func (p photo) versions() map[string]lockkeeper.Version {
	all := map[string]lockkeeper.Version{}
	for path, f := range p {
		all[path] = lockkeeper.Version{Kind: lockkeeper.File, Mode: f.mode, Sum: sha256.Sum256(f.text)}
	}
	return all
}

type fileDiff struct {
	path           string
	added, removed int
	text           string
}

// diffOf compares two photographs, by path.
func (p photo) diffOf(now photo) (list []fileDiff) {
	for _, path := range slices.Sorted(maps.Keys(merged(p, now))) {
		old, new := p[path].text, now[path].text
		if bytes.Equal(old, new) {
			continue
		}
		d := fileDiff{path: path, text: string(diff.Diff("a/"+path, old, "b/"+path, new))}
		for line := range strings.Lines(d.hunks()) {
			switch line[0] {
			case '+':
				d.added++
			case '-':
				d.removed++
			}
		}
		list = append(list, d)
	}
	return list
}

// hunks returns the diff without its header.
func (d fileDiff) hunks() string {
	if i := strings.Index(d.text, "\n@@"); i >= 0 {
		return d.text[i+1:]
	}
	return d.text
}

func (w *walk) showDiff(list []fileDiff, context bool) {
	added, removed := 0, 0
	for _, d := range list {
		added, removed = added+d.added, removed+d.removed
		fmt.Fprintf(w.to, "  %s  %s %s\n", w.paint(term.Bold, d.path), w.paint(term.Green, fmt.Sprintf("+%d", d.added)), w.paint(term.Red, fmt.Sprintf("-%d", d.removed)))
		for line := range strings.Lines(d.hunks()) {
			if context || line[0] == '+' || line[0] == '-' {
				w.diffLine(strings.TrimRight(line, "\n"))
			}
		}
	}
	fmt.Fprintf(w.to, "  %d files, %d lines added, %d removed\n", len(list), added, removed)
	if !context && len(list) > 0 {
		fmt.Fprintln(w.to, w.paint(term.Dim, "  (lockkeeper demo --diff also shows context lines)"))
	}
}

func (w *walk) diffLine(line string) {
	switch {
	case strings.HasPrefix(line, "+"):
		line = w.paint(term.Green, line)
	case strings.HasPrefix(line, "-"):
		line = w.paint(term.Red, line)
	case strings.HasPrefix(line, "@@"):
		line = w.paint(term.Dim, line)
	}
	fmt.Fprintln(w.to, "    "+line)
}
