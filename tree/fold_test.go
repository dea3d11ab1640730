package tree

import (
	"os"
	"path/filepath"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"lockkeeper"
)

// folding makes a root treat one directory and new ones below it as case-folding. The
// disk itself does not fold, which shows where the setting matters.
func folding(t *testing.T, r *Root, dir string) {
	t.Helper()
	var want fileStat
	if err := r.withFD(func(fd int) (err error) {
		want, err = statAt(fd, dir)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r.folds = func(fd int) (bool, error) {
		e, err := statFD(fd)
		return e.sameFile(want), err
	}
}

// shows: GP-2
func TestFoldedNames(t *testing.T) {
	r := plant(t, "Fold/", "plain/", "To -> Fold/LINKED.rb")
	folding(t, r, "Fold")
	for path, spellings := range map[string][]string{
		"Fold/new.rb":         {"Fold/new.rb", "Fold/New.rb", "Fold/NEW.RB", "./Fold//nEW.rb", r.Dir() + "/Fold/New.rb"},
		"Fold/caf\u00e9":      {"Fold/caf\u00e9", "Fold/cafe\u0301", "Fold/CAFE\u0301", "Fold/CAF\u00c9"},
		"Fold/strasse":        {"Fold/stra\u00dfe", "Fold/STRASSE", "Fold/STRA\u1e9eE"},
		"Fold/\u03c3":         {"Fold/\u03a3", "Fold/\u03c2", "Fold/\u03c3"},
		"Fold/\uab70":         {"Fold/\u13a0", "Fold/\uab70"},
		"Fold/new/deep/er.rb": {"Fold/New/Deep/ER.rb", "Fold/new/deep/er.rb"},
		"Fold/linked.rb":      {"To", "Fold/Linked.rb"},
		"plain/New.rb":        {"plain/New.rb"},
		"plain/new.rb":        {"plain/new.rb"},
		"plain/NEW/X":         {"plain/NEW/X"},
		"plain/cafe\u0301":    {"plain/cafe\u0301"},
		"plain/caf\u00e9":     {"plain/caf\u00e9"},
		"plain/PROGRA~1":      {"plain/PROGRA~1"},
		"plain/a.":            {"plain/a."},
		"plain/x\u200dy":      {"plain/x\u200dy"},
		"fold/New.rb":         {"fold/New.rb"},
	} {
		for _, spelling := range spellings {
			wantTarget(t, r, "", spelling, path, lockkeeper.File)
		}
	}
	for spelling, reason := range map[string]string{
		"Fold/PROGRA~1": "short form", "Fold/a.": "dot", "Fold/a ": "dot or space", "Fold/x\u200dy": "invisible",
		"Fold/x\ufe0f": "invisible", "Fold/new/a./x": "dot",
	} {
		wantRefused(t, r, spelling, read, reason)
	}
}

// A name is folded only where the disk agrees that it is the same file.
func TestFoldedNamesAgreeWithTheDisk(t *testing.T) {
	r := plant(t, "d/Upper.rb", "d/lower.rb", "d/One.rb", "d/Two.rb", "d/two.rb")
	if err := os.Link(filepath.Join(r.Dir(), "d/One.rb"), filepath.Join(r.Dir(), "d/one.rb")); err != nil {
		t.Fatal(err)
	}
	folding(t, r, "d")
	wantRefused(t, r, "d/Upper.rb", read, "distinguishes it")
	wantRefused(t, r, "d/LOWER.rb", read, "distinguishes it")
	wantRefused(t, r, "d/Two.rb", read, "distinguishes it")
	if got, err := r.Resolve("", "d/One.rb", read); err != nil || got.Path != "d/one.rb" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestReservedNamesFold(t *testing.T) {
	r := plant(t)
	r.folds = func(int) (bool, error) { return true, nil }
	wantTarget(t, r, "", ".Git", lockkeeper.GitTarget, lockkeeper.File)
	wantRefused(t, r, ".GIT/config", write, "part of .git")
	wantRefused(t, r, ".LockKeeper/x", write, "belongs to Lockkeeper")
	wantRefused(t, r, "GIT~1", write, "short form")
	wantRefused(t, r, ".g\u200cit", write, "invisible")
}

func TestThisDiskDoesNotFold(t *testing.T) {
	r := plant(t, "README")
	other := filepath.Join(r.Dir(), "rEADME")
	if _, err := os.Stat(other); err == nil {
		t.Skip("the temporary directory is on a disk that folds case")
	}
	wantTarget(t, r, "", "Readme", "Readme", lockkeeper.File)
	wantTarget(t, r, "", "New/X", "New/X", lockkeeper.File)
	// Two listed names that differ only in case do not prove folding.
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantTarget(t, open(t, r.Dir()), "", "New", "New", lockkeeper.File)
}

// shows: GP-2
func TestEveryPairOfCasesFolds(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		other := unicode.SimpleFold(r)
		if other == r {
			continue
		}
		a, errA := foldName("x" + string(r))
		b, errB := foldName("x" + string(other))
		again, errAgain := foldName(a)
		if errA != nil || errB != nil || errAgain != nil || a != b || again != a {
			t.Errorf("%U and %U: %+q and %+q, again %+q; %v, %v, %v", r, other, a, b, again, errA, errB, errAgain)
		}
	}
}

// The folded form must be a fixed point, or a target would not be its own name.
func FuzzFoldName(f *testing.F) {
	for _, seed := range []string{"New.rb", "Ma\u00dfe", "\u0130", "\u1f80\u0345", "\u03b1\u0345\u0301", "\u1e9e\u0323\u0307", "\ufb03", "\u212b", "\uac00", "\u13a0\uab70", "\u13f0\u13f8"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		once, err := foldName(name)
		if err != nil {
			return
		}
		for _, again := range []string{once, norm.NFD.String(once), norm.NFD.String(name), norm.NFC.String(name)} {
			if twice, err := foldName(again); err != nil || twice != once {
				t.Errorf("%+q: folded %+q, then from %+q %+q, %v", name, once, again, twice, err)
			}
		}
		if isPlain(name) && once != name {
			t.Errorf("%+q is plain but was folded to %+q", name, once)
		}
	})
}
