package mcp

import (
	"encoding/json"

	"lockkeeper"
	"lockkeeper/internal/encoding/strictjson"
)

// legible refuses arguments that can be read in more than one way: reading them would put
// a replacement character in place of what is not Unicode, and a file would hold something
// else than was sent.
func legible(arguments json.RawMessage) error {
	if err := strictjson.Check(arguments); err != nil {
		return &lockkeeper.InputError{Field: "arguments", Reason: err.Error(), Next: "send content that is no text as base64"}
	}
	return nil
}
