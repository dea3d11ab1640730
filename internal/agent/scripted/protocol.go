package scripted

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
)

// A protocol prints lines as Claude Code does, with the fields in the same order.
type protocol struct {
	out     io.Writer
	flags   *flags
	session string
	dir     string
	ids     int
	turns   int
	denials []denial
}

type denial struct {
	Tool  string `json:"tool_name"`
	ID    string `json:"tool_use_id"`
	Input any    `json:"tool_input"`
}

type object map[string]any

// uuid returns a reproducible id.
func uuid(of ...any) string {
	h := sha256.Sum256([]byte(fmt.Sprint(of...)))
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

func (p *protocol) id(kind string) string {
	p.ids++
	return fmt.Sprintf("%s_%06d", kind, p.ids)
}

// line writes a line of the stream. Other formats have no stream.
func (p *protocol) line(kind string, fields object) error {
	if p.flags.format != "stream-json" {
		return nil
	}
	b, err := p.encode(kind, fields)
	if err != nil {
		return err
	}
	_, err = p.out.Write(b)
	return err
}

func (p *protocol) encode(kind string, fields object) ([]byte, error) {
	p.ids++
	fields["type"], fields["session_id"], fields["uuid"] = kind, p.session, uuid(p.session, p.ids)
	b, err := json.Marshal(fields)
	return append(b, '\n'), err
}

func (p *protocol) init() error {
	return p.line("system", object{"subtype": "init", "cwd": p.dir, "model": p.flags.model, "permissionMode": p.flags.mode,
		"tools": []string{"Bash", "Edit", "Read", "Write"}, "claude_code_version": "scripted"})
}

func (p *protocol) assistant(block object, word string) error {
	fields := object{"message": object{"id": p.id("msg"), "type": "message", "role": "assistant", "model": p.flags.model, "content": []object{block}}}
	if word != "" {
		fields["error"] = word
	}
	return p.line("assistant", fields)
}

func (p *protocol) say(text, word string) error {
	return p.assistant(object{"type": "text", "text": text}, word)
}

// tool reports a tool call. act runs only if the tool is permitted.
func (p *protocol) tool(name string, input any, denied bool, act func() (string, error)) error {
	id := p.id("toolu")
	if err := p.assistant(object{"type": "tool_use", "id": id, "name": name, "input": input}, ""); err != nil {
		return err
	}
	p.turns++
	answer := fmt.Sprintf("Claude requested permissions to use %s, but you haven't granted it yet.", name)
	failed := denied || !p.flags.permits(name)
	if failed {
		p.denials = append(p.denials, denial{Tool: name, ID: id, Input: input})
	} else {
		var err error
		if answer, err = act(); err != nil {
			answer, failed = err.Error(), true
		}
	}
	block := object{"type": "tool_result", "tool_use_id": id, "content": answer, "is_error": failed}
	return p.line("user", object{"message": object{"role": "user", "content": []object{block}}})
}

// result returns the last line and its exit code.
func (p *protocol) result(subtype string, r *Result) (line []byte, code int, err error) {
	t := r.Tokens
	fields := object{
		"subtype": subtype, "is_error": false, "result": r.Text, "stop_reason": "end_turn", "num_turns": p.turns + 1,
		"duration_ms": 0, "duration_api_ms": 0, "total_cost_usd": r.CostUSD, "api_error_status": nil,
		"usage": object{"input_tokens": t.Input, "output_tokens": t.Output, "cache_read_input_tokens": t.CacheRead, "cache_creation_input_tokens": t.CacheWrite},
		"modelUsage": object{p.flags.model: object{"inputTokens": t.Input, "outputTokens": t.Output, "cacheReadInputTokens": t.CacheRead,
			"cacheCreationInputTokens": t.CacheWrite, "costUSD": r.CostUSD}},
		"permission_denials": append([]denial{}, p.denials...),
	}
	if r.Structured != nil && p.flags.schema != "" {
		fields["structured_output"] = r.Structured
	}
	switch {
	case subtype != "success":
		delete(fields, "result")
		fields["is_error"], fields["errors"], code = true, []string{r.Text}, 1
	case r.Fail != nil:
		fields["is_error"], fields["result"], fields["stop_reason"], code = true, r.Fail.Text, "stop_sequence", 1
		if r.Fail.Status != 0 {
			fields["api_error_status"] = r.Fail.Status
		}
	}
	if p.flags.format == "text" {
		return []byte(r.Text + "\n"), code, nil
	}
	line, err = p.encode("result", fields)
	return line, code, err
}
