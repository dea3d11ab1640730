package research

import (
	"io"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/option"
)

// maxResponse bounds what is read of a response. The longest answer of a model is a small
// part of it.
const maxResponse = 16 << 20

// reception is what came back for one request, whatever could be made of it.
type reception struct {
	status int // 0: nothing came
	header http.Header
	head   []byte // how the body begins
	broken error  // why the body could not be read to its end
}

// see watches a response come in. It implements option.Middleware.
func (r *reception) see(request *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(request)
	if err == nil {
		r.status, r.header = response.StatusCode, response.Header
		response.Body = &watchedBody{http.MaxBytesReader(nil, response.Body, maxResponse), r}
	}
	return response, err
}

// watchedBody tells a reception what is read of a body.
type watchedBody struct {
	io.ReadCloser
	seen *reception
}

// headLength is how much of a body is kept for errors to show.
const headLength = 1 << 10

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.seen.head = append(b.seen.head, p[:min(n, headLength-len(b.seen.head))]...)
	if err != nil && err != io.EOF {
		b.seen.broken = err
	}
	return n, err
}
