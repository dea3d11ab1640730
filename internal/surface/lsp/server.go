package lsp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/project"
)

// Options configures a Server.
type Options struct {
	Open func(ctx context.Context, root string) (*project.Project, error)
	// Env is the environment of the editor.
	Env []string
	// Lookup finds a variable in Env.
	Lookup func(name string) (string, bool)
	// Claimant claims files, and Person asks holders for them.
	Claimant author.Instance
	Person   lockkeeper.Actor
	Version  string
	Now      func() time.Time
}

// A Server serves one editor.
type Server struct {
	opt       Options
	conn      *conn
	documents map[string]*document // by URI
	roots     map[string]*root     // by directory
	woken     chan news
	told      map[string]string // the last logged error about each codebase and file
	failed    map[string]error  // codebases that could not be opened since the last look
	lifecycle lifecycle
}

// lifecycle is the state of the conversation with the editor.
type lifecycle int

const (
	lifecycleNew lifecycle = iota
	lifecycleOpen
	lifecycleShutdown
)

func New(o Options) *Server {
	return &Server{opt: o, documents: map[string]*document{}, roots: map[string]*root{}, woken: make(chan news), told: map[string]string{}, failed: map[string]error{}}
}

const (
	lookEvery   = 5 * time.Second  // interval of the search for changes that cause no event
	longestCall = 20 * time.Second // limit of one act, so that a slow store delays but does not end the server
)

// ErrNoShutdown is the error of Serve if the editor ended the server without a shutdown.
var ErrNoShutdown = errors.New("the editor sent exit before shutdown")

// codeNotInitialized is the error code of a request before initialize.
const codeNotInitialized = -32002

// Serve talks to the editor until it ends, or until ctx ends. Closing in must end a read.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.Writer) (err error) {
	s.conn = &conn{in: bufio.NewReader(in), out: out}
	ctx, stop := context.WithCancel(ctx)
	var reading sync.WaitGroup
	incoming, ended := make(chan []byte), make(chan error, 1)
	reading.Go(func() { ended <- s.receive(ctx, incoming) })
	defer func() {
		stop()
		if closing := in.Close(); err == nil {
			err = closing
		}
		reading.Wait()
		// ctx has ended, and the claims must still be released.
		err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case text := <-incoming:
			if end, err := s.handle(ctx, text); end || err != nil {
				return err
			}
		case err := <-ended:
			if err == io.EOF {
				return nil
			}
			return fmt.Errorf("read from the editor: %w", err)
		case n := <-s.woken:
			err = s.hear(ctx, n)
		case <-look.C:
			err = s.look(ctx)
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// receive passes the messages of the editor on until the input or ctx ends.
func (s *Server) receive(ctx context.Context, to chan<- []byte) error {
	for {
		text, err := s.conn.read()
		if err != nil {
			return err
		}
		select {
		case to <- text:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// handle handles one message. end means that the editor ended the server. An error means that
// the editor can no longer be reached.
func (s *Server) handle(ctx context.Context, text []byte) (end bool, err error) {
	m, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return false, s.conn.write(&jsonrpc.Response{Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: err.Error()}})
	}
	r, ok := m.(*jsonrpc.Request)
	switch {
	case !ok: // the server sends no requests, so no response matters
		return false, nil
	case r.Method == "exit" && s.lifecycle != lifecycleShutdown:
		return true, ErrNoShutdown
	case r.Method == "exit":
		return true, nil
	case r.IsCall():
		result, failed := s.call(ctx, r)
		return false, s.conn.answer(r.ID, result, failed)
	case s.lifecycle != lifecycleOpen:
		return false, nil
	}
	return false, s.notified(ctx, r)
}

func (s *Server) call(ctx context.Context, r *jsonrpc.Request) (result any, err error) {
	switch {
	case r.Method == "initialize" && s.lifecycle == lifecycleNew:
		s.lifecycle = lifecycleOpen
		return capabilities(s.opt.Version), nil
	case s.lifecycle == lifecycleNew:
		return nil, &jsonrpc.Error{Code: codeNotInitialized, Message: "the first request must be initialize"}
	case s.lifecycle == lifecycleShutdown, r.Method == "initialize":
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: r.Method + " is not allowed now"}
	}
	switch r.Method {
	case "shutdown":
		s.lifecycle = lifecycleShutdown
		return nil, nil
	case "textDocument/codeAction":
		var p documentParams
		if err := decode(r, &p); err != nil {
			return nil, err
		}
		return s.actions(p), nil
	case "workspace/executeCommand":
		var p commandParams
		if err := decode(r, &p); err != nil {
			return nil, err
		}
		return nil, s.execute(ctx, p)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "unknown method " + r.Method}
}

// notified handles a notification. The protocol has no answer to an invalid one.
func (s *Server) notified(ctx context.Context, r *jsonrpc.Request) error {
	var p documentParams
	if decode(r, &p) != nil || p.TextDocument.URI == "" {
		return nil
	}
	switch r.Method {
	case "textDocument/didOpen":
		return s.opened(ctx, p.TextDocument.URI)
	case "textDocument/didChange":
		return s.changed(p.TextDocument.URI)
	case "textDocument/didSave":
		return s.saved(ctx, p.TextDocument.URI)
	case "textDocument/didClose":
		return s.closed(ctx, p.TextDocument.URI)
	}
	return nil
}

func decode(r *jsonrpc.Request, into any) error {
	if err := json.Unmarshal(r.Params, into); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return nil
}

func (s *Server) show(kind messageType, text string) error {
	return s.conn.notify("window/showMessage", messageParams{Type: kind, Message: text})
}

// log writes an error about a codebase to the editor's log, once.
func (s *Server) log(about string, failed error) error {
	text := lockkeeper.LocalTimes(lockkeeper.Message(failed))
	if s.told[about] == text {
		return nil
	}
	s.told[about] = text
	return s.conn.notify("window/logMessage", messageParams{Type: messageWarning, Message: about + ": " + text})
}
