package supervisor

import (
	"context"
	"fmt"
	"time"

	"lockkeeper"
)

// These environment variables have the socket of the supervisor and its token.
const (
	SocketVariable = "LOCKKEEPER_SOCKET"
	TokenVariable  = "LOCKKEEPER_SOCKET_TOKEN"
)

// A Handler handles the requests of a command. Its methods may be called concurrently, and
// return when their context ends.
type Handler interface {
	// Grant returns the paths that the command may write now.
	Grant(ctx context.Context) (GrantView, error)
	// Gap records that the command wants to change a path that it must not change.
	Gap(ctx context.Context, path, reason string) error
}

// A GrantView describes the grant of a command to the command.
type GrantView struct {
	ID     string     `json:"id"`
	Holder string     `json:"holder"`
	Write  []string   `json:"write"`
	Read   []string   `json:"read"`
	Until  *time.Time `json:"until"` // null: no limit
}

// An AnswerError reports that the supervisor refused a request or failed.
type AnswerError struct {
	Status  int
	Class   lockkeeper.Code
	Message string
}

func (e *AnswerError) Error() string { return fmt.Sprintf("supervisor: %s", e.Message) }

// Code implements lockkeeper.CodeOf.
func (e *AnswerError) Code() lockkeeper.Code { return e.Class }

// These are the bodies of requests and of refusals.
type (
	gapBody struct {
		Path   string `json:"path"`
		Reason string `json:"reason"`
	}
	errorBody struct {
		Error string          `json:"error"`
		Code  lockkeeper.Code `json:"code"`
	}
)
