package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lockkeeper"
	"lockkeeper/internal/surface/view"
)

// These are the URIs of the resources.
const (
	stateURI  = "lockkeeper://state"
	auditURI  = "lockkeeper://audit"
	eventsURI = auditURI + "/" // a path follows
)

const mediaJSON = "application/json"

// addResources adds the state of the codebase and the event log.
func (s *Server) addResources() {
	s.mcp.AddResource(&mcp.Resource{URI: stateURI, Name: "state", Title: "State", MIMEType: mediaJSON,
		Description: "Where every unit of the flow is, who holds which files, what is queued and blocked, and which gaps are open."},
		s.resource(func(ctx context.Context, _ string) (any, error) {
			state, err := s.view.State(ctx)
			if err != nil {
				return nil, err
			}
			text, err := state.JSON()
			return json.RawMessage(text), err
		}))
	s.mcp.AddResource(&mcp.Resource{URI: auditURI, Name: "audit", Title: "Record of events", MIMEType: mediaJSON,
		Description: "Recent events, newest first: who acquired, refused, wrote, landed and released what."},
		s.resource(func(ctx context.Context, _ string) (any, error) {
			return s.view.Audit(ctx, view.AuditQuery{Limit: mostShown})
		}))
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: eventsURI + "{+path}", Name: "audit of a file", Title: "Record of events of a file", MIMEType: mediaJSON,
		Description: "Recent events of one file, newest first. Its path is relative to the root of the codebase and percent-encoded."},
		s.resource(func(ctx context.Context, uri string) (any, error) {
			name, err := url.PathUnescape(strings.TrimPrefix(uri, eventsURI))
			if err != nil {
				return nil, &lockkeeper.InputError{Field: "uri", Value: uri, Reason: err.Error(), Next: "write a % in a name as %25"}
			}
			path, err := s.registry.Path(s.at(name))
			if err != nil {
				return nil, err
			}
			return s.view.Audit(ctx, view.AuditQuery{Path: s.at(path), Limit: mostShown})
		}))
}

// resource serves a value as JSON.
func (s *Server) resource(read func(ctx context.Context, uri string) (any, error)) mcp.ResourceHandler {
	return func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		ctx, cancel := context.WithTimeout(ctx, longestCall)
		defer cancel()
		value, err := read(ctx, req.Params.URI)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: mediaJSON, Text: string(text)}}}, nil
	}
}
