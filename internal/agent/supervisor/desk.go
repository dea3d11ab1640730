package supervisor

import (
	"context"
	"fmt"
	"time"

	"lockkeeper"
)

// The variables that tell a command where its supervisor listens, and by which
// word it is known there.
const (
	SocketVariable = "LOCKKEEPER_SOCKET"
	TokenVariable  = "LOCKKEEPER_SOCKET_TOKEN"
)

// Desk answers what commands ask. Its methods may be called at the same time,
// and end with their context.
type Desk interface {
	// Grant says what the command may write now.
	Grant(ctx context.Context) (GrantView, error)
	// Gap records that the command wants to change a path that it may not.
	Gap(ctx context.Context, path, reason string) error
}

// GrantView is what a command learns about the grant it runs under.
type GrantView struct {
	ID     string     `json:"id"`
	Holder string     `json:"holder"`
	Write  []string   `json:"write"`
	Read   []string   `json:"read"`
	Until  *time.Time `json:"until"` // null: no end is set
}

// AnswerError is a refusal of the supervisor, or its failure.
type AnswerError struct {
	Status  int
	Class   lockkeeper.Code
	Message string
}

func (e *AnswerError) Error() string { return fmt.Sprintf("supervisor: %s", e.Message) }

// Code implements lockkeeper.CodeOf.
func (e *AnswerError) Code() lockkeeper.Code { return e.Class }

// The bodies of requests and of refusals.
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
