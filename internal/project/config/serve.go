package config

import (
	"net/url"
	"time"
)

// Serve configures the server. Certificates are given on the command line.
type Serve struct {
	Listen       string        `key:"listen" env:"LOCKKEEPER_LISTEN" pattern:"^[^ ]*:[0-9]{1,5}$" default:"127.0.0.1:0" doc:"The address and port the server listens on. Port 0: any free port. Addresses other than 127.0.0.1 need TLS, or a flag of lockkeeper serve."`
	AllowHosts   []string      `key:"allow_hosts" env:"LOCKKEEPER_ALLOW_HOSTS" pattern:"^[A-Za-z0-9.-]+(:[0-9]{1,5})?$" example:"locks.example.org" doc:"Additional host names of the server, such as that of a proxy in front of it."`
	LocalClients string        `key:"local_clients" enum:"outside unseen any" default:"outside" doc:"Which clients on this machine can connect. outside: those that the server sees outside every sandbox of Lockkeeper. unseen: also those whose process it cannot see. any: also agents in a sandbox. All of them need a token or a session."`
	Session      time.Duration `key:"session" min:"1m" max:"90d" default:"7d" doc:"How long a browser login lasts."`
	Webhook      string        `key:"webhook" env:"LOCKKEEPER_WEBHOOK" pattern:"^https?://[^ ]+$" example:"https://hooks.example.org/lockkeeper" doc:"A URL that gets a POST with JSON when more decisions wait for a person than before. If it is secret, set LOCKKEEPER_WEBHOOK instead."`
}

// redactWebhook hides the path and query of a webhook URL, which may be secret.
func redactWebhook(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "***"
	}
	return u.Scheme + "://" + u.Host + "/***"
}
