package mcp

import (
	"encoding/json"

	"lockkeeper"
	"lockkeeper/internal/encoding/strictjson"
)

// legible refuses ambiguous arguments. Decoding would replace invalid Unicode, and a file
// would get other content than was sent.
func legible(arguments json.RawMessage) error {
	if err := strictjson.Check(arguments); err != nil {
		return &lockkeeper.InputError{Field: "arguments", Reason: err.Error(), Next: "send binary content as base64"}
	}
	return nil
}
