package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdClients starts an etcd server in a process of its own and connects 16
// clients to it. A piece of work is two transactions.
func etcdClients(ctx context.Context, b *bench) (_ []side, closeAll func() error, err error) {
	server, err := start(ctx, "etcd", filepath.Join(b.dir, "etcd"))
	if err != nil {
		return nil, nil, err
	}
	var open []*clientv3.Client
	closeAll = func() (err error) {
		for _, c := range open {
			err = errors.Join(err, c.Close())
		}
		return errors.Join(err, server.stop())
	}
	address, err := server.line()
	if err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	var sides []side
	for i := range clients {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Context: ctx})
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		open = append(open, c)
		sides = append(sides, etcdSide(ctx, c, i))
	}
	return sides, closeAll, nil
}

func etcdSide(ctx context.Context, c *clientv3.Client, client int) side {
	var free []clientv3.Cmp
	var take, give []clientv3.Op
	for _, key := range paths(fmt.Sprintf("client%d", client), client) {
		free = append(free, clientv3.Compare(clientv3.CreateRevision(key), "=", 0))
		take = append(take, clientv3.OpPut(key, "bench"))
		give = append(give, clientv3.OpDelete(key))
	}
	return func(n int) error {
		for range n {
			taken, err := c.Txn(ctx).If(free...).Then(take...).Commit()
			if err != nil {
				return err
			}
			if !taken.Succeeded {
				return errors.New("etcd: a key exists that was deleted")
			}
			if _, err := c.Txn(ctx).Then(give...).Commit(); err != nil {
				return err
			}
		}
		return nil
	}
}

// asEtcd is the server's process. It ends with its input.
func asEtcd(_ context.Context, p *parent, args []string) error {
	cfg := embed.NewConfig()
	cfg.Dir = args[0]
	cfg.LogLevel = "fatal"
	local, err := url.Parse("http://127.0.0.1:0")
	if err != nil {
		return err
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*local}, []url.URL{*local}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*local}, []url.URL{*local}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer server.Close()
	<-server.Server.ReadyNotify()
	if err := p.say("http://" + server.Clients[0].Addr().String()); err != nil {
		return err
	}
	p.line() // until the parent closes it
	return nil
}
