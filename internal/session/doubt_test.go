package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
)

// A scene is a codebase in which sessions and other programs work.
type scene struct {
	*Registry
	t *testing.T
}

func newScene(t *testing.T) scene { return scene{newBook(t), t} }

func (s scene) put(path, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.at(path)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.at(path), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// as runs a function in a session.
func (s scene) as(id string, do func(context.Context, *Session)) {
	s.t.Helper()
	s.in(s.t, Caller{ID: id, Agent: "x"}, do)
}

// wrote makes a session claim and write a file.
func (s scene) wrote(id, path, text string) {
	s.t.Helper()
	s.as(id, func(ctx context.Context, sess *Session) {
		if claims(s.t, sess, path) != 0 {
			s.t.Fatalf("%s is refused %s", id, path)
		}
		s.put(path, text)
		s.must(sess.Left(ctx, Call{}, []string{path}))
	})
	tick(s.t)
}

func (s scene) begins(id, command string) {
	s.t.Helper()
	s.as(id, func(_ context.Context, sess *Session) { s.must(sess.Begin("1", Call{Command: command})) })
}

// ends returns what a session is told after its command, about its own files and those of others.
func (s scene) ends(id string) (own []Disturbance, others []Uncovered) {
	s.t.Helper()
	s.as(id, func(ctx context.Context, sess *Session) {
		c := sess.End("1", false)
		s.must(sess.Left(ctx, c, nil))
		var err error
		own, err = sess.Disturbed(ctx, c)
		s.must(err)
		others, err = sess.Compare(ctx, c, true)
		s.must(err)
	})
	return own, others
}

// replaces reports whether a session may replace a whole file.
func (s scene) replaces(id, path string) (may bool) {
	s.t.Helper()
	s.as(id, func(ctx context.Context, sess *Session) {
		refused, err := sess.Claim(ctx, Write{Path: path, Whole: true})
		s.must(err)
		may = len(refused) == 0
	})
	return may
}

// If a session's file changes during a command of the session that does not name it, any program
// may have changed it. The session is told, its version is kept, and it must read the file before
// replacing it. Another session whose command ran at that time is also told, in either order.
//
// shows: GP-5
func TestChangedBesideACommand(t *testing.T) {
	s := newScene(t)
	s.wrote("a", "one", "mine\n")
	s.begins("a", "npm test")
	s.begins("b", "./generate")
	s.put("one", "whose\n")
	own, _ := s.ends("a")
	if len(own) != 1 || own[0].Path != "one" || !own[0].DuringCommand || own[0].Rescue == "" {
		t.Fatalf("the holder is told %+v", own)
	}
	content, err := s.app.Shelf().Content(own[0].Rescue)
	s.must(err)
	defer content.Close()
	kept := make([]byte, 16)
	if n, _ := content.Read(kept); string(kept[:n]) != "mine\n" {
		t.Errorf("kept is %q", kept[:n])
	}
	if _, others := s.ends("b"); len(others) != 1 || others[0].Doubt != "its holder was at work at the same time" || others[0].Rescue == "" || others[0].Back {
		t.Errorf("the other one is told %+v", others)
	}
	if s.replaces("a", "one") {
		t.Error("the holder replaces what it has not seen")
	}
	s.begins("a", "ls")
	if own, _ := s.ends("a"); len(own) != 0 {
		t.Errorf("told twice: %+v", own)
	}
	s.as("a", func(ctx context.Context, sess *Session) { s.must(sess.Saw(ctx, "one", shows("whose\n"))) })
	if !s.replaces("a", "one") {
		t.Error("it has read it")
	}
}

// Changes to files that the command names count as the session's own work.
func TestNamedByACommand(t *testing.T) {
	s := newScene(t)
	s.wrote("a", "one", "mine\n")
	s.begins("a", "./format one")
	s.put("one", "formatted\n")
	if own, _ := s.ends("a"); len(own) != 0 || !s.replaces("a", "one") {
		t.Errorf("told %+v", own)
	}
	s.begins("a", "./format one")
	s.put("one", "half of it\n")
	s.as("a", func(ctx context.Context, sess *Session) {
		c, err := sess.EndAll(ctx)
		s.must(err)
		if own, err := sess.Disturbed(ctx, c); err != nil || len(own) != 0 {
			t.Errorf("told %+v, %v", own, err)
		}
	})
}

// The same applies to a command without a reported end.
//
// shows: GP-5
func TestChangedBesideAnInterruptedCommand(t *testing.T) {
	s := newScene(t)
	s.wrote("a", "one", "mine\n")
	s.begins("a", "npm test")
	s.put("one", "whose\n")
	s.as("a", func(ctx context.Context, sess *Session) {
		c, err := sess.EndAll(ctx)
		s.must(err)
		if own, err := sess.Disturbed(ctx, c); err != nil || len(own) != 1 || !own[0].DuringCommand || own[0].Rescue == "" {
			t.Errorf("told %+v, %v", own, err)
		}
	})
	if s.replaces("a", "one") {
		t.Error("it replaces what it has not seen")
	}
}

// A holder that was told of a change does not become its author. The session that made it is also
// told.
func TestDisturbedIsNotOwn(t *testing.T) {
	s := newScene(t)
	s.wrote("a", "one", "mine\n")
	s.begins("b", "./fix one")
	s.put("one", "theirs\n")
	s.as("a", func(ctx context.Context, sess *Session) {
		own, err := sess.Disturbed(ctx, Call{})
		s.must(err)
		if len(own) != 1 || own[0].DuringCommand {
			t.Errorf("the holder is told %+v", own)
		}
		s.must(sess.Saw(ctx, "one", shows("theirs\n")))
	})
	if _, others := s.ends("b"); len(others) != 1 {
		t.Errorf("the other one is told %+v", others)
	}
}

// shows returns a function that acts as a host that showed a text.
func shows(text string) func([]byte) bool {
	return func(content []byte) bool { return string(content) == text }
}

// Content that was shown before a file changed is not its current content.
//
// shows: GP-5
func TestSeenBesideAChange(t *testing.T) {
	s := newScene(t)
	s.put("one", "a person's\n")
	saw := func(text string) {
		s.as("b", func(ctx context.Context, sess *Session) { s.must(sess.Saw(ctx, "one", shows(text))) })
	}
	saw("before\n")
	if s.replaces("b", "one") {
		t.Error("it replaces what it has not seen")
	}
	saw("a person's\n")
	if !s.replaces("b", "one") {
		t.Error("it has seen it")
	}
}

// If a holder creates a removed file again, a second removal is reported. The same applies to a
// holder that reports no content.
//
// shows: GP-5
func TestSecondRemoval(t *testing.T) {
	s := newScene(t)
	removes := func(path string) []Uncovered {
		t.Helper()
		s.begins("b", "./clean")
		s.must(os.Remove(s.at(path)))
		_, others := s.ends("b")
		return others
	}
	for _, text := range []string{"mine\n", "mine again\n"} {
		s.wrote("a", "one", text)
		if found := removes("one"); len(found) != 1 || !found[0].Gone {
			t.Errorf("%q: told %+v", text, found)
		}
	}
	s.begins("b", "./clean")
	s.wrote("a", "one", "made while the command runs\n")
	s.must(os.Remove(s.at("one")))
	if _, found := s.ends("b"); len(found) != 1 || !found[0].Gone {
		t.Errorf("made and removed meanwhile: told %+v", found)
	}
	_, err := s.app.Acquire(t.Context(), lockkeeper.Request{Holder: "ada", Policy: "author", TTL: time.Hour, Locks: writes([]string{"two"})}, 0)
	s.must(err)
	for round := range 2 {
		s.put("two", "theirs\n")
		tick(t)
		if found := removes("two"); len(found) != 1 || found[0].Path != "two" || !found[0].Gone {
			t.Errorf("round %d: told %+v", round, found)
		}
	}
	s.begins("b", "./clean")
	s.put("beside", "x\n")
	if _, found := s.ends("b"); len(found) != 0 {
		t.Errorf("told again: %+v", found)
	}
}

// A change of a file that another session reads is shown and kept, and never reverted.
//
// shows: GP-5 CF-15
func TestChangedUnderAReader(t *testing.T) {
	for _, lock := range []lockkeeper.Target{{Path: ".", Kind: lockkeeper.Dir}, {Path: "sub", Kind: lockkeeper.Dir}, {Path: "sub/one", Kind: lockkeeper.File}} {
		t.Run(lock.Path, func(t *testing.T) {
			s := newScene(t)
			s.put("sub/one", "before\n")
			for _, who := range []string{"reader", "another"} {
				_, err := s.app.Acquire(t.Context(), lockkeeper.Request{Holder: who, TTL: time.Hour, Locks: []lockkeeper.Lock{{Target: lock, Mode: lockkeeper.Read}}}, 0)
				s.must(err)
			}
			tick(t)
			command := "python3 -c \"open('sub/one','w').write('written by a program')\""
			s.begins("b", command)
			s.put("sub/one", "written by a program")
			_, found := s.ends("b")
			if len(found) != 1 || found[0].Path != "sub/one" || !strings.HasPrefix(found[0].Doubt, "its holder only reads it") || found[0].Rescue == "" || found[0].Back || found[0].NotBack != "" {
				t.Errorf("told %+v", found)
			}
			tick(t)
			s.begins("b", command)
			if _, found := s.ends("b"); len(found) != 0 {
				t.Errorf("told twice: %+v", found)
			}
		})
	}
}

// However many files a session reads, it remembers those that it holds.
func TestReadsMuch(t *testing.T) {
	s := newScene(t)
	s.wrote("a", "one", "mine\n")
	s.as("a", func(ctx context.Context, sess *Session) {
		for i := range maxFiles + 2 {
			s.must(sess.note(ctx, filepath.Join("many", string(rune('A'+i))), File{Seen: true}))
		}
		if len(sess.rec.Files) > maxFiles {
			t.Errorf("%d files are remembered", len(sess.rec.Files))
		}
		s.put("one", "an editor's\n")
		if own, err := sess.Disturbed(ctx, Call{}); err != nil || len(own) != 1 || own[0].Rescue == "" {
			t.Errorf("told %+v, %v", own, err)
		}
	})
}

// If very many files change, all changes are shown and recorded. Changes to a session's files are
// kept first.
func TestVeryManyChanges(t *testing.T) {
	s := newScene(t)
	s.wrote("a", "z", "mine\n")
	s.put("sub/one", "before\n")
	_, err := s.app.Acquire(t.Context(), lockkeeper.Request{Holder: "reader", TTL: time.Hour,
		Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "sub", Kind: lockkeeper.Dir}, Mode: lockkeeper.Read}}}, 0)
	s.must(err)
	tick(t)
	s.begins("b", "./generate")
	for i := range mostKept {
		s.put(fmt.Sprintf("sub/%d", i), fmt.Sprint(i))
	}
	s.put("z", "theirs\n")
	_, found := s.ends("b")
	if len(found) != mostKept+2 || found[0].Path != "z" { // including the directory
		t.Fatalf("%d are shown, first %+v", len(found), found[0])
	}
	kept, err := s.app.Shelf().List(t.Context())
	s.must(err)
	if found[0].Rescue == "" || len(kept) > mostKept {
		t.Errorf("%d are kept, and %+v", len(kept), found[0])
	}
}
