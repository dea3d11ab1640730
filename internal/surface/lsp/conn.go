package lsp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	largest    = 64 << 20 // limit of a message; an editor sends a whole file on opening
	maxHeaders = 16       // limit of the header lines of a message
)

// conn reads and writes the messages of the base protocol: JSON-RPC with headers.
type conn struct {
	in  *bufio.Reader
	out io.Writer
}

// read returns the body of the next message, or io.EOF if the editor ended.
func (c *conn) read() ([]byte, error) {
	size := -1
	for range maxHeaders {
		line, err := c.in.ReadSlice('\n') // the buffer limits the length of a line
		if err == io.EOF && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		header := strings.TrimRight(string(line), "\r\n")
		if header == "" {
			return c.body(size)
		}
		name, value, _ := strings.Cut(header, ":")
		if !strings.EqualFold(name, "Content-Length") {
			continue
		}
		if size, err = strconv.Atoi(strings.TrimSpace(value)); err != nil || size < 0 {
			return nil, fmt.Errorf("invalid header %q", header)
		}
	}
	return nil, fmt.Errorf("a message has more than %d headers", maxHeaders)
}

func (c *conn) body(size int) ([]byte, error) {
	switch {
	case size < 0:
		return nil, fmt.Errorf("a message has no Content-Length")
	case size > largest:
		return nil, fmt.Errorf("a message has %d bytes, more than %d", size, largest)
	}
	text := make([]byte, size)
	_, err := io.ReadFull(c.in, text)
	return text, err
}

func (c *conn) write(m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "Content-Length: %d\r\n\r\n%s", len(text), text)
	return err
}

func (c *conn) notify(method string, params any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.write(&jsonrpc.Request{Method: method, Params: text})
}

// answer sends the result of a request, or why it failed.
func (c *conn) answer(id jsonrpc.ID, result any, failed error) error {
	if failed != nil {
		return c.write(&jsonrpc.Response{ID: id, Error: failed})
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return c.write(&jsonrpc.Response{ID: id, Result: text})
}
