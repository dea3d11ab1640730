package mcp

import (
	"context"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeNowhere serves a directory without locks: it has no tools and says why.
func ServeNowhere(ctx context.Context, version string, in io.ReadCloser, out io.WriteCloser) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "lockkeeper", Title: "Lockkeeper", Version: version},
		&mcp.ServerOptions{Instructions: "This directory has no locks, so you need not claim files here. A person can set up locks with lockkeeper init."})
	_, err := converse(ctx, server, in, out)
	return err
}

// converse serves over streams until the client closes them or ctx ends.
func converse(ctx context.Context, server *mcp.Server, in io.ReadCloser, out io.WriteCloser) (*mcp.ServerSession, error) {
	ss, err := server.Connect(ctx, &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: 2 * largest}, nil)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- ss.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = ss.Close()
		<-ended
	}
	return ss, err
}
