package mcp

import (
	"context"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeNowhere answers where there are no locks: with no tools, and the reason.
func ServeNowhere(ctx context.Context, version string, in io.ReadCloser, out io.WriteCloser) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "lockkeeper", Title: "Lockkeeper", Version: version},
		&mcp.ServerOptions{Instructions: "This directory belongs to no codebase with locks: nothing has to be claimed here. A person can change that with lockkeeper init."})
	_, err := converse(ctx, server, in, out)
	return err
}

// converse answers over streams until the other side closes them or ctx ends, either of
// which is how it is meant to end.
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
