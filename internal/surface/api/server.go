package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"lockkeeper/internal/compat/lfs"
	"lockkeeper/internal/job"
	"lockkeeper/internal/machine/peer"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/internal/surface/mcp"
	"lockkeeper/internal/surface/view"
	"lockkeeper/internal/surface/web"
)

// Options of a Server. App, Look and Runs stay the caller's to close, after the server.
type Options struct {
	App  *project.Project
	View *view.Reader
	Runs *acts.Runs

	Listen         string        // an address with its port; default 127.0.0.1:0
	Certificate    string        // a file, with Key: TLS
	Key            string        // a file
	BeyondLoopback bool          // without TLS, too
	AllowHosts     []string      // names besides the address that the server is known by
	Webhook        string        // an address that is told when somebody is needed; empty: none
	Session        time.Duration // how long a login lasts; default 7 days
	Owner          string        // whom LoginLink logs in; empty: nobody
	Clients        string        // on this machine: ClientsOutside, ClientsUnseen or ClientsAny; default ClientsOutside
	Name           string        // of the codebase; default: the name of its folder
	Version        string        // of the program

	Log    *slog.Logger     // default: nothing is logged
	Now    func() time.Time // default: time.Now
	Limits Limits
}

// Limits bound what a server takes on. The zero value of each means its default.
type Limits struct {
	Connections  int   // 4,096
	Streams      int   // of events, at once; 2,000
	Requests     int   // at once, besides; 128
	Waits        int   // requests that wait for locks, at once; 256
	Large        int   // requests with large bodies, at once; 8
	Strangers    int   // requests to what is open to all, at once; 32
	Body         int64 // bytes; 1 MiB
	LargeBody    int64 // bytes; 8 MiB
	StrangerBody int64 // bytes, of requests to what is open to all; 4 KiB
	Header       int   // bytes; 16 KiB

	Read        time.Duration // of a body; 30 s
	Write       time.Duration // of an answer; 60 s
	Idle        time.Duration // of a connection; 60 s
	Heartbeat   time.Duration // between two signs of life in a stream; 15 s
	StreamWrite time.Duration // of one page of a stream; 10 s

	LoginBurst int           // attempts at once; 10
	LoginEvery time.Duration // one more; 6 s
}

func (l *Limits) fill() {
	fill(&l.Connections, 4_096)
	fill(&l.Streams, 2_000)
	fill(&l.Requests, 128)
	fill(&l.Waits, 256)
	fill(&l.Large, 8)
	fill(&l.Strangers, 32)
	fill(&l.Body, 1<<20)
	fill(&l.LargeBody, 8<<20)
	fill(&l.StrangerBody, 4<<10)
	fill(&l.Header, 16<<10)
	fill(&l.Read, 30*time.Second)
	fill(&l.Write, time.Minute)
	fill(&l.Idle, time.Minute)
	fill(&l.Heartbeat, 15*time.Second)
	fill(&l.StreamWrite, 10*time.Second)
	fill(&l.LoginBurst, 10)
	fill(&l.LoginEvery, 6*time.Second)
}

// fill gives what is not said its default.
func fill[T comparable](value *T, usual T) { *value = cmp.Or(*value, usual) }

// Server is the running server of a codebase.
type Server struct {
	opt      Options
	queue    *job.Queue
	feed     *feed.Feed
	accounts *access.Accounts
	peers    peer.Finder

	pages  *web.Dashboard
	agents *mcp.Server
	files  *lfs.API

	table   []route
	openapi []byte
	mux     *http.ServeMux
	hosts   []string
	rooms   map[roomName]*room
	once    *once
	logins  *attempts
	frames  frames
	metrics *metrics

	listener net.Listener
	http     *http.Server
	address  string
	running  context.Context // canceled when all requests must stop
	leaving  context.Context // has ended when nobody is to wait for anything any more
	leave    context.CancelFunc
	stop     context.CancelFunc
	done     sync.WaitGroup
	handlers census
}

// Open begins to serve.
func Open(ctx context.Context, o Options) (_ *Server, err error) {
	o.fill()
	s := &Server{opt: o, accounts: access.Open(o.App.AccessDir()), mux: http.NewServeMux(), once: newOnce(o.Now), logins: newAttempts(o.Limits.LoginBurst, o.Limits.LoginEvery)}
	s.hosts = lowered(o.AllowHosts)
	s.rooms = map[roomName]*room{
		roomUsual:   newRoom(o.Limits.Requests, 2*time.Second, "requests"),
		roomLarge:   newRoom(o.Limits.Large, 5*time.Second, "large requests"),
		roomWaits:   newRoom(o.Limits.Waits, 0, "requests that wait for locks"),
		roomStreams: newRoom(o.Limits.Streams, 0, "streams"),
		roomOpen:    newRoom(o.Limits.Strangers, 2*time.Second, "requests of strangers"),
	}
	s.metrics = newMetrics(s)
	if err := errors.Join(s.mount(), s.lay()); err != nil {
		return nil, err
	}
	if s.queue, err = job.Open(o.App); err != nil {
		return nil, err
	}
	if err = s.accounts.RemoveKey(); err != nil {
		return nil, err
	}
	if s.listener, err = listen(ctx, &o); err != nil {
		return nil, err
	}
	s.address = addressOfListener(s.listener, o.Certificate != "")
	if s.feed, err = feed.Open(ctx, o.App.Store, feed.Options{Page: 128, Trouble: func(err error) { o.Log.Warn("the log could not be read", "error", err) }}); err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	if err := s.announce(ctx); err != nil {
		return nil, errors.Join(err, s.feed.Close(), s.listener.Close())
	}
	s.start(ctx)
	return s, nil
}

func (o *Options) fill() {
	o.Limits.fill()
	fill(&o.Listen, "127.0.0.1:0")
	fill(&o.Clients, ClientsOutside)
	fill(&o.Session, 7*24*time.Hour)
	fill(&o.Log, slog.New(slog.DiscardHandler))
	fill(&o.Name, filepath.Base(o.App.Root.Dir()))
	if o.Now == nil {
		o.Now = time.Now
	}
}

func lowered(names []string) (list []string) {
	for _, name := range names {
		list = append(list, strings.ToLower(name))
	}
	return list
}

// lay registers the routes with the mux and builds their description.
func (s *Server) lay() (err error) {
	s.table = routes()
	for i := range s.table {
		s.add(&s.table[i])
	}
	s.openapi, err = describe(s.table, s.opt.Version)
	return err
}

// announce records the address of the server, for logins.
func (s *Server) announce(ctx context.Context) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	return s.accounts.Announce(ctx, access.Listening{Address: s.address, Process: &self, Since: s.opt.Now().UTC()})
}

// start begins to answer.
func (s *Server) start(ctx context.Context) {
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.running, s.stop = base, stop
	s.leaving, s.leave = context.WithCancel(base)
	l := s.opt.Limits
	s.http = &http.Server{
		Handler: s, BaseContext: func(net.Listener) context.Context { return base }, ConnContext: s.withPeer,
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: l.Idle, MaxHeaderBytes: l.Header,
		ErrorLog:                     slog.NewLogLogger(s.opt.Log.Handler(), slog.LevelDebug),
		DisableGeneralOptionsHandler: true,
	}
	s.done.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.opt.Log.Error("the server cannot be reached any more", "error", err)
		}
	})
	s.done.Go(func() {
		s.metrics.follow(base, s.feed, func(err error) { s.opt.Log.Warn("events could not be counted", "error", err) })
	})
	if s.opt.Webhook != "" {
		hook := newWebhook(s, s.opt.Webhook)
		s.done.Go(func() { hook.follow(base, s.feed) })
	}
}

// Address is where the server is reached, as http://127.0.0.1:4711.
func (s *Server) Address() string { return s.address }

// LoginLink makes an address that logs the owner in, once: whoever started the server may do
// everything.
func (s *Server) LoginLink(ctx context.Context) (string, error) {
	who, err := s.accounts.Member(ctx, s.opt.Owner, access.Admin)
	if err != nil {
		return "", err
	}
	ticket, err := s.accounts.Ticket(ctx, who, s.opt.Now())
	return access.Listening{Address: s.address}.LoginLink(ticket), err
}

// closing is how long requests that are under way have to end by themselves.
const closing = 5 * time.Second

// Close ends the server. Streams and waits for locks end at once, and clients come back to
// the next one; what else is under way ends soon. Nothing of it runs when it returns.
func (s *Server) Close() error {
	err := s.accounts.Withdraw(s.address)
	s.leave()
	feedErr := s.feed.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	shut := s.http.Shutdown(ctx)
	if errors.Is(shut, context.DeadlineExceeded) {
		shut = s.http.Close()
	}
	s.stop() // what did not end in time does now
	s.handlers.close()
	s.done.Wait()
	return errors.Join(err, feedErr, shut, s.agents.Close())
}

// census counts handlers that run, and lets none begin once it is closed: net/http does
// not wait for those whose connections it closes.
type census struct {
	mu     sync.Mutex
	closed bool
	run    sync.WaitGroup
}

func (n *census) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.run.Add(1)
	}
	return !n.closed
}

func (n *census) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.run.Wait()
}
