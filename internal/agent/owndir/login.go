package owndir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"lockkeeper/durable"
	"lockkeeper/internal/machine/filelock"
)

// maxLogin is larger than any login.
const maxLogin = 1 << 20

// A login keeps the login in a copy and the person's login equal while a call runs.
type login struct {
	name  string   // name of the login in the copy
	root  *os.Root // the root of the copy
	file  string   // the real path of the person's login
	token []string
	lock  string // the lock file that serializes writers of the person's login
	tell  func(error)

	seen    []byte // the content of the copy's login and the person's when they were last equal
	watcher *fsnotify.Watcher
	done    sync.WaitGroup
}

// followLogin copies the login of the person and watches the login and the copy. It returns nil if
// there is no login that programs renew.
func (d *Dir) followLogin(ctx context.Context, root *os.Root, tell func(error)) (*login, error) {
	file, err := filepath.EvalSymlinks(filepath.Join(d.path, d.Login))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the agent's login: %w", err)
	}
	if !d.usable(file) { // the login is a link to a file that usable rejects
		return nil, nil
	}
	l := &login{name: d.Login, root: root, file: file, token: d.Token, lock: d.lock, tell: tell}
	if l.seen, err = l.theirs(); err != nil {
		return nil, fmt.Errorf("read the agent's login: %w", err)
	}
	if err := root.WriteFile(d.Login, l.seen, 0o600); err != nil {
		return nil, fmt.Errorf("copy the agent's login: %w", err)
	}
	if l.check(l.seen) != nil {
		return nil, nil // an API key, or an unknown format, which is not renewed
	}
	if err := os.MkdirAll(filepath.Dir(d.lock), 0o700); err != nil {
		return nil, err
	}
	l.follow(ctx)
	return l, nil
}

// follow copies each change when it happens. If changes cannot be watched, end still copies
// the last one.
func (l *login) follow(ctx context.Context) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	if errors.Join(watcher.Add(l.root.Name()), watcher.Add(filepath.Dir(l.file))) != nil {
		watcher.Close()
		return
	}
	l.watcher = watcher
	l.done.Go(func() {
		l.sync(ctx) // copies changes that were made before the watch began
		for e := range watcher.Events {
			if name := filepath.Base(e.Name); name == l.name || name == filepath.Base(l.file) {
				l.sync(ctx) // ignores errors: a program may still be writing the file
			}
		}
	})
	l.done.Go(func() {
		for range watcher.Errors { // an error means lost events; the next event, or end, finds the change
		}
	})
}

// end copies the last change of the login.
func (l *login) end(ctx context.Context) {
	if l.watcher != nil {
		l.watcher.Close()
		l.done.Wait()
	}
	if err := l.sync(ctx); err != nil {
		l.tell(fmt.Errorf("the agent renewed its login, but the new one could not be saved to %s: %w", l.file, err))
	}
}

// sync makes both logins equal again if one of them changed. It continues after the call was
// canceled, because a renewed login may be the only valid one.
func (l *login) sync(ctx context.Context) error {
	release, err := l.acquire()
	if err != nil {
		return err
	}
	defer release()
	theirs, err := l.theirs()
	if err != nil || l.check(theirs) != nil {
		return nil // the person is logged out, or a program is writing the file
	}
	ours, err := l.ours()
	switch {
	case !bytes.Equal(theirs, l.seen):
		if err == nil && bytes.Equal(ours, theirs) {
			l.seen = theirs
			return nil
		}
		return l.adopt(theirs)
	case err != nil:
		return err
	case bytes.Equal(ours, l.seen):
		return nil
	}
	if err := l.check(ours); err != nil {
		return err
	}
	if err := durable.WriteFile(context.WithoutCancel(ctx), l.file, ours, 0o600); err != nil {
		return err
	}
	l.seen = ours
	return nil
}

// acquire locks the person's login against other calls, also those of other processes.
func (l *login) acquire() (release func(), err error) {
	f, err := os.OpenFile(l.lock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Wait(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		filelock.Unlock(f)
		f.Close()
	}, nil
}

// adopt gives the copy the login of the person, by a rename within the copy.
func (l *login) adopt(theirs []byte) error {
	draft := l.name + ".new"
	if err := l.root.RemoveAll(draft); err != nil {
		return err
	}
	f, err := l.root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(theirs)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := l.root.Rename(draft, l.name); err != nil {
		return err
	}
	l.seen = theirs
	return nil
}

func (l *login) theirs() ([]byte, error) { return content(os.OpenFile(l.file, readable, 0)) }

// ours reads the login of the copy, which the agent may have replaced with anything.
func (l *login) ours() ([]byte, error) {
	info, err := l.root.Lstat(l.name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // content cannot detect a link
		return nil, errors.New("not a regular file")
	}
	return content(l.root.OpenFile(l.name, readable, 0))
}

// readable are the flags that open a file without waiting for the other end of a pipe.
const readable = os.O_RDONLY | syscall.O_NONBLOCK

// content reads an open file if it is a regular file of at most maxLogin bytes.
func content(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxLogin+1))
	if err == nil && len(text) > maxLogin {
		err = fmt.Errorf("larger than %d bytes", maxLogin)
	}
	return text, err
}

// check returns an error if a text is not a login that programs renew.
func (l *login) check(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	for _, member := range l.token {
		object, _ := value.(map[string]any)
		value = object[member]
	}
	if token, _ := value.(string); token == "" {
		return errors.New("no refresh token in it: the agent was logged out")
	}
	return nil
}
