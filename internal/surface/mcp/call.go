package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lockkeeper"
	"lockkeeper/internal/encoding/strictjson"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/internal/surface/acts"
)

// nameOf returns the program that started this process, under the name that its client gave.
// Agent is empty before the client has initialized the session.
func (s *Server) nameOf(ss *mcp.ServerSession) session.Caller {
	who := *s.window
	if said := ss.InitializeParams(); said != nil && said.ClientInfo != nil {
		who.Agent = cmp.Or(said.ClientInfo.Name, "mcp")
	}
	return who
}

func (s *Server) callerOf(ss *mcp.ServerSession, extra *mcp.RequestExtra) (session.Caller, error) {
	if s.window != nil {
		who := s.nameOf(ss)
		who.Agent = cmp.Or(who.Agent, "mcp")
		return who, nil
	}
	if extra == nil || extra.TokenInfo == nil || ss.ID() == "" {
		return session.Caller{}, &lockkeeper.RefusedError{Act: "call", Reason: "not logged in", Next: "connect again, with a token"}
	}
	who := session.Caller{ID: ss.ID(), Agent: extra.TokenInfo.UserID}
	return who, s.attend(ss, who)
}

type call struct {
	*Server
	who  session.Caller
	info session.Info // the caller's session when it was last used
}

// within calls the function do with the caller's session; about says what the session works on, if
// known.
func (v *call) within(ctx context.Context, about string, do func(*session.Session) error) (err error) {
	sess, hosted, err := v.enter(ctx, v.who, about)
	if err != nil {
		return err
	}
	defer func() {
		v.info = sess.Info()
		if hosted || v.who.Process == nil {
			err = errors.Join(err, sess.Close())
		} else { // hooks of the same agent may take over the claims
			err = errors.Join(err, sess.Leave(ctx, true))
		}
	}()
	return do(sess)
}

// enter opens the session of a caller: that of the same agent's hooks, or its own.
func (s *Server) enter(ctx context.Context, who session.Caller, about string) (sess *session.Session, hosted bool, err error) {
	if who.Process != nil {
		there, err := s.registry.OfProcess(who.Process)
		if err != nil {
			return nil, false, err
		}
		if hosted = there.ID != "" && there.ID != who.ID; hosted {
			who = session.Caller{ID: there.ID, Agent: there.Agent, Process: who.Process, TTY: who.TTY}
		}
	}
	who.About = about
	sess, err = s.registry.Enter(ctx, who)
	return sess, hosted, err
}

// leave releases the claims of a caller, unless hooks of the same agent have taken them over.
func (s *Server) leave(who session.Caller) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	sess, hosted, err := s.enter(ctx, who, "")
	if err != nil {
		return err
	}
	if hosted {
		return sess.Close()
	}
	err = sess.Leave(ctx, false)
	_, landing := s.later.Land(ctx)
	return errors.Join(err, landing)
}

// news returns what happened since the last call: files that became free, and the results of
// deferred patches.
func (v *call) news(ctx context.Context) (list []string, err error) {
	_, landing := v.later.Land(ctx) // news are returned even if a patch fails
	err = v.within(ctx, "", func(sess *session.Session) (err error) {
		list, err = sess.News(ctx)
		return err
	})
	if err != nil {
		return list, errors.Join(landing, err)
	}
	ended, err := v.later.News(v.info.ID)
	return append(list, ended...), errors.Join(landing, err)
}

// at joins a relative path to the root. It does not clean the path, so that later checks see a
// path that leads outside.
func (s *Server) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return s.app.Root.Dir() + "/" + path
}

// file returns the canonical name of a file to write.
func (s *Server) file(path string) (string, error) {
	if strings.TrimSpace(path) == "" {
		return "", &lockkeeper.InputError{Field: "path", Reason: "required", Next: "name a file, relative to the root of the codebase"}
	}
	name, err := s.registry.Path(s.at(path))
	if err == nil {
		err = acts.CheckName(s.app, path)
	}
	if err != nil {
		return "", err
	}
	if class, is := s.app.Protects(name); is {
		return "", refusal.Reserved(name, class.Reason(), class.Next())
	}
	return name, nil
}

// files returns the canonical names of files, without duplicates.
func (s *Server) files(paths []string) (list []string, err error) {
	switch {
	case len(paths) == 0:
		return nil, &lockkeeper.InputError{Field: "paths", Reason: "no path is named", Next: "name at least one file"}
	case len(paths) > lockkeeper.MaxTargets:
		return nil, &lockkeeper.InputError{Field: "paths", Reason: fmt.Sprintf("more than %d", lockkeeper.MaxTargets), Next: "split the work"}
	}
	seen := map[string]bool{}
	for _, p := range paths {
		name, err := s.file(p)
		if err != nil {
			return nil, err
		}
		if !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	return list, nil
}

// legible refuses ambiguous arguments. Decoding would replace invalid Unicode, and a file
// would get other content than was sent.
func legible(arguments json.RawMessage) error {
	if err := strictjson.Check(arguments); err != nil {
		return &lockkeeper.InputError{Field: "arguments", Reason: err.Error(), Next: "send binary content as base64"}
	}
	return nil
}
