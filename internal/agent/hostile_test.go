package agent

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	initLine  = `{"type":"system","subtype":"init","session_id":"s-1","model":"m"}` + "\n"
	goodLine  = `{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","result":"real","num_turns":1,"total_cost_usd":0.5,"usage":{"input_tokens":1},"permission_denials":[]}` + "\n"
	fakeLine  = `{"type":"result","subtype":"success","is_error":false,"result":"fake","num_turns":1}` + "\n"
	otherLine = `{"type":"result","subtype":"success","is_error":false,"session_id":"s-2","result":"fake","num_turns":1}` + "\n"
	wordLine  = `{"type":"assistant","session_id":"s-1","message":{"id":"m1","content":[{"type":"text","text":"\u001b[2Jhi \u202ethere\u0007"}]}}` + "\n"
)

// said returns the evaluation of an output. The agent succeeded (0), failed (1), or its exit was
// not observed (-1).
func said(t *testing.T, a Adapter, output string, code int) (Result, bool, error) {
	t.Helper()
	r := newReader(nil, a.stream(), func(Event) {})
	r.lines.write([]byte(output))
	r.size = int64(len(output))
	v := verdict{name: a.Name(), reader: r}
	if code >= 0 {
		v.exit = &Exit{Code: code}
	}
	res, finished, err := v.pass()
	if !finished && code >= 0 {
		err = r.unfinished(v.origin(res), *v.exit, "")
	}
	return res, finished, err
}

// A line that looks like a result counts only if it is the agent's last line.
func TestFakeResults(t *testing.T) {
	quoted := `{"type":"user","session_id":"s-1","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":` +
		strings.TrimSuffix(string(quoteJSON(fakeLine+goodLine)), "\n") + `}]}}` + "\n"
	for name, test := range map[string]struct {
		output   string
		finished bool
		text     string
	}{
		"without a session":     {initLine + fakeLine, false, ""},
		"of another session":    {initLine + otherLine, false, ""},
		"before the session":    {goodLine + initLine, false, ""},
		"without any session":   {goodLine, false, ""},
		"inside a tool's words": {initLine + quoted, false, ""},
		"then the agent speaks": {initLine + goodLine + wordLine, false, "real"},
		"then half a line":      {initLine + goodLine + wordLine[:20], false, "real"},
		"the real one":          {initLine + quoted + fakeLine + otherLine + goodLine, true, "real"},
		"garbage follows":       {initLine + goodLine + fakeLine, true, "real"},
		"not an object":         {initLine + `["result"]` + "\n", false, ""},
		"types that are wrong":  {initLine + strings.Replace(goodLine, `"num_turns":1`, `"num_turns":"x"`, 1), false, ""},
		"a task is running":     {initLine + `{"type":"system","subtype":"task_started","session_id":"s-1","task_id":"b"}` + "\n" + goodLine, false, "real"},
	} {
		t.Run(name, func(t *testing.T) {
			res, finished, err := said(t, Claude{}, test.output, -1)
			if finished != test.finished || res.Text != test.text || err != nil {
				t.Errorf("finished %v with %q, %v; want %v with %q", finished, res.Text, err, test.finished, test.text)
			}
		})
	}
}

func quoteJSON(text string) []byte {
	return []byte(`"` + strings.NewReplacer(`"`, `\"`, "\n", `\n`).Replace(text) + `"`)
}

// An end without a result has a typed error that describes the output.
func TestEndsWithoutResult(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		code   int
		want   error
		says   string
	}{
		"nothing":             {"", 0, &Error{Kind: Empty}, "without output"},
		"nothing, and failed": {"", 3, &Error{Kind: Crashed}, "exit status 3"},
		"garbage":             {"Segmentation\x00 fault\nmore\n", 0, &Error{Kind: Garbage}, `none of 2 lines belongs to its protocol, for example "Segmentation fault"`},
		"garbage, and failed": {"oh no\n", 1, &Error{Kind: Crashed}, `"oh no"`},
		"half a result":       {initLine + goodLine[:50], 0, &Error{Kind: Garbage}, "it ended without a result"},
		"no line":             {"abc", 0, &Error{Kind: Garbage}, "no line belongs to its protocol"},
		"broken text":         {"\xff\xfe\x80{\n", 0, &Error{Kind: Garbage}, `for example "{"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, finished, err := said(t, Claude{}, test.output, test.code)
			if finished || !sameType(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("finished %v, %T %v; want %T with %q", finished, err, err, test.want, test.says)
			}
			if !utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\x00\x1b\n") {
				t.Errorf("the error %q is not fit to be shown", err)
			}
		})
	}
}

// Events are short and safe to display.
func TestEventsAreClean(t *testing.T) {
	var list []Event
	r := newReader(nil, Claude{}.stream(), gather(&list))
	r.lines.write([]byte(initLine + wordLine + strings.Replace(wordLine, "there", strings.Repeat("ö", 2*maxEventText), 1) + "\x1b]0;title\x07\n"))
	var texts []string
	for _, e := range list {
		if len(e.Text) > maxEventText+len("…") || !utf8.ValidString(e.Text) || strings.ContainsAny(e.Text, "\x1b\x07\u202e") {
			t.Errorf("%q", e.Text)
		}
		texts = append(texts, e.Text)
	}
	if len(texts) != 4 || texts[1] != "[2Jhi there" || texts[3] != "]0;title" {
		t.Errorf("%q", texts)
	}
}

// A line of 100 MB is skipped with little memory, and the lines after it are read.
func TestLongLine(t *testing.T) {
	f := filesIn(t.TempDir())
	file, err := os.Create(f.Output)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	write := func(text string) {
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write(initLine + `{"type":"user","session_id":"s-1","x":"`)
	for range 100 {
		write(strings.Repeat("x", 1<<20))
	}
	write("\"}\n" + goodLine)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, finished, err := Completed(Claude{}, f, nil)
	runtime.ReadMemStats(&after)
	if !finished || res.Text != "real" || err != nil {
		t.Errorf("finished %v with %q, %v", finished, res.Text, err)
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 150 {
		t.Errorf("%d MB were allocated", used)
	}
}

// Lines arrive complete, however the input is split.
func TestLines(t *testing.T) {
	text := []byte("a\n\nbcd\nefghijkl\nm\nno end")
	for size := 1; size <= len(text); size++ {
		var got []string
		l := lines{limit: 4, each: func(b []byte) { got = append(got, string(b)) }, tooLong: func(b []byte) { got = append(got, "long "+string(b)) }}
		for part := range bytesOf(text, size) {
			l.write(part)
			if len(l.rest) > l.limit {
				t.Fatalf("%d bytes are kept", len(l.rest))
			}
		}
		if all := strings.Join(got, "|"); all != "a||bcd|long efgh|m|long no e" || !bytes.Equal(l.rest, []byte("no e")) {
			t.Fatalf("in parts of %d: %s, rest %q", size, all, l.rest)
		}
	}
}

func bytesOf(text []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(text) > 0 {
			n := min(size, len(text))
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// In the other protocols, too, only the last result counts.
func TestOtherFakes(t *testing.T) {
	codex := `{"type":"thread.started","thread_id":"t-1"}` + "\n"
	ended := `{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":2}}` + "\n"
	gemini := `{"type":"init","session_id":"g-1","model":"m"}` + "\n"
	success := `{"type":"result","status":"success"}` + "\n"
	for name, test := range map[string]struct {
		adapter  Adapter
		output   string
		finished bool
	}{
		"codex without a thread":   {Codex{}, ended, false},
		"codex continues":          {Codex{}, codex + ended + `{"type":"item.started","item":{"id":"i","type":"command_execution"}}` + "\n", false},
		"codex done":               {Codex{}, codex + ended, true},
		"gemini without a session": {Gemini{}, success, false},
		"gemini continues":         {Gemini{}, gemini + success + `{"type":"message","role":"assistant","content":"x"}` + "\n", false},
		"gemini done":              {Gemini{}, gemini + success, true},
		"a command says anything":  {Plain{}, goodLine, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, finished, err := said(t, test.adapter, test.output, -1); finished != test.finished || err != nil {
				t.Errorf("finished %v, %v", finished, err)
			}
		})
	}
}

// A program that stops at its own limit has not finished, even if it then reports success.
func TestGeminiStopsShort(t *testing.T) {
	output := `{"type":"init","session_id":"g-1","model":"m"}` + "\n" + `{"type":"error","severity":"error","message":"Maximum session turns exceeded"}` + "\n" + `{"type":"result","status":"success"}` + "\n"
	_, finished, err := said(t, Gemini{}, output, 0)
	if !finished || !sameType(err, &Error{Kind: Unfinished}) {
		t.Errorf("finished %v, %v", finished, err)
	}
	_, _, err = said(t, Gemini{}, "", 41)
	if !sameType(err, &Error{Kind: Refused}) {
		t.Errorf("exit 41: %v", err)
	}
}
