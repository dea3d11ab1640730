package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdClients starts an etcd server in a process of its own and connects clients to it. One
// piece of work is two transactions.
func etcdClients(b *bench, clients int) (sides []side) {
	server := b.start("etcd", filepath.Join(b.dir, "etcd"))
	address := server.line()
	for i := range clients {
		c := get(clientv3.New(clientv3.Config{Endpoints: []string{address}, Context: b.ctx}))
		b.cleanup(c.Close)
		sides = append(sides, etcdSide(b, c, i))
	}
	return sides
}

func etcdSide(b *bench, c *clientv3.Client, client int) side {
	var free []clientv3.Cmp
	var take, give []clientv3.Op
	for _, key := range paths(fmt.Sprintf("client%d", client), client) {
		free = append(free, clientv3.Compare(clientv3.CreateRevision(key), "=", 0))
		take = append(take, clientv3.OpPut(key, "bench"))
		give = append(give, clientv3.OpDelete(key))
	}
	return times(func() {
		if !get(c.Txn(b.ctx).If(free...).Then(take...).Commit()).Succeeded {
			check(errors.New("etcd: a key exists that was deleted"))
		}
		get(c.Txn(b.ctx).Then(give...).Commit())
	})
}

// asEtcd is the main function of the server process, which ends when its input is closed.
func asEtcd(_ *bench, p *parent, args []string) {
	cfg := embed.NewConfig()
	cfg.Dir = args[0]
	cfg.LogLevel = "fatal"
	local := get(url.Parse("http://127.0.0.1:0"))
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*local}, []url.URL{*local}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*local}, []url.URL{*local}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	server := get(embed.StartEtcd(cfg))
	defer server.Close()
	<-server.Server.ReadyNotify()
	p.say("http://" + server.Clients[0].Addr().String())
	p.line() // returns when the parent closes the input
}
