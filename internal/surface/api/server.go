package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
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

// Options configures a Server. The caller closes App, View and Runs after the server.
type Options struct {
	App  *project.Project
	View *view.Reader
	Runs *acts.Runs

	Listen         string        // host and port; default 127.0.0.1:0
	Certificate    string        // file name; with Key, the server uses TLS
	Key            string        // file name
	BeyondLoopback bool          // allow other machines even without TLS
	AllowHosts     []string      // host names that clients may use in addition to the address
	Webhook        string        // URL to call when a decision needs a person; empty: none
	Session        time.Duration // how long a login lasts; default 7 days
	Owner          string        // the account that LoginLink logs in; empty: none
	Clients        string        // which clients on this machine are admitted: ClientsOutside (default), ClientsUnseen or ClientsAny
	Command        string        // the command that serves, for logins: serve, run, …
	Version        string        // version of the program

	Log    *slog.Logger     // default: no log
	Now    func() time.Time // default: time.Now
	Limits Limits
}

// Limits bounds the load of a server. A zero field means its default, which the comment gives.
type Limits struct {
	Connections  int   // 4,096
	Streams      int   // concurrent event streams; 2,000
	Requests     int   // other concurrent requests; 128
	Waits        int   // concurrent requests that wait for locks; 256
	Large        int   // concurrent requests with large bodies; 8
	Strangers    int   // concurrent requests to open routes; 32
	Body         int64 // bytes; 1 MiB
	LargeBody    int64 // bytes; 8 MiB
	StrangerBody int64 // bytes, for open routes; 4 KiB
	Header       int   // bytes; 16 KiB

	Read        time.Duration // time to read a body; 30 s
	Write       time.Duration // time to write a response; 60 s
	Idle        time.Duration // time until an idle connection is closed; 60 s
	Heartbeat   time.Duration // interval between heartbeats of a stream; 15 s
	StreamWrite time.Duration // time to write one page of a stream; 10 s

	LoginBurst int           // failed logins allowed at once; 10
	LoginEvery time.Duration // time until one more failed login is allowed; 6 s
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

// fill sets a zero value to its default.
func fill[T comparable](value *T, usual T) { *value = cmp.Or(*value, usual) }

// A Server is the running server of a codebase.
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
	metrics *metrics

	listener  net.Listener
	http      *http.Server
	address   string
	announced string          // id of its record for logins
	running   context.Context // canceled when all requests must stop
	leaving   context.Context // canceled when streams and waits for locks must end
	leave     context.CancelFunc
	stop      context.CancelFunc
	done      sync.WaitGroup
	handlers  sync.RWMutex // running handlers hold it for reading, because net/http does not wait for handlers whose connections it closes
}

func Open(ctx context.Context, o Options) (_ *Server, err error) {
	o.fill()
	s := &Server{opt: o, accounts: access.Open(o.App.AccessDir()), mux: http.NewServeMux(), once: newOnce(o.Now), logins: newAttempts(o.Limits.LoginBurst, o.Limits.LoginEvery)}
	for _, name := range o.AllowHosts {
		s.hosts = append(s.hosts, strings.ToLower(name))
	}
	s.rooms = map[roomName]*room{
		roomUsual:   newRoom(o.Limits.Requests, 2*time.Second, "requests"),
		roomLarge:   newRoom(o.Limits.Large, 5*time.Second, "large requests"),
		roomWaits:   newRoom(o.Limits.Waits, 0, "requests that wait for locks"),
		roomStreams: newRoom(o.Limits.Streams, 0, "streams"),
		roomOpen:    newRoom(o.Limits.Strangers, 2*time.Second, "requests without a login"),
	}
	s.metrics = newMetrics()
	s.table = routes()
	for i := range s.table {
		s.add(&s.table[i])
	}
	if s.openapi, err = describe(s.table, o.Version); err != nil {
		return nil, err
	}
	if err := s.mount(); err != nil {
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
	if o.Now == nil {
		o.Now = time.Now
	}
}

// announce records the address of the server, for logins.
func (s *Server) announce(ctx context.Context) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	s.announced, err = s.accounts.Announce(ctx, access.Server{Address: s.address, Command: s.opt.Command, Process: &self, Since: s.opt.Now().UTC()})
	return err
}

// start accepts connections and starts the background goroutines.
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
			s.opt.Log.Error("the server no longer accepts connections", "error", err)
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

// Address returns the URL of the server, such as http://127.0.0.1:4711.
func (s *Server) Address() string { return s.address }

// LoginLink returns a URL that logs the owner in once. The user who started the server has every right.
func (s *Server) LoginLink(ctx context.Context) (string, error) {
	who, err := s.accounts.Member(ctx, s.opt.Owner, access.Admin)
	if err != nil {
		return "", err
	}
	ticket, err := s.accounts.Ticket(ctx, who, s.opt.Now())
	return access.Server{Address: s.address}.LoginLink(ticket), err
}

// closing is how long active requests may take to finish when the server closes.
const closing = 5 * time.Second

// Close stops the server. Streams and waits for locks end at once, and clients reconnect to the next server.
// Other requests get a short time to finish. No goroutine of the server runs when Close returns.
func (s *Server) Close() error {
	err := s.accounts.Withdraw(s.announced)
	s.leave()
	feedErr := s.feed.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	shut := s.http.Shutdown(ctx)
	if errors.Is(shut, context.DeadlineExceeded) {
		shut = s.http.Close()
	}
	s.stop()          // cancel the requests that did not finish in time
	s.handlers.Lock() // this lock is never released, so no handler runs or starts any more
	s.done.Wait()
	return errors.Join(err, feedErr, shut, s.agents.Close())
}
