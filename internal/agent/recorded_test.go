package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded returns the recorded output of a real program and copies it to the files of a call.
func (s *scenario) recorded(t *testing.T) (Files, []byte) {
	t.Helper()
	text, err := os.ReadFile(s.record())
	if err != nil {
		t.Fatalf("%v; record it with -update, where %s is installed", err, s.agent)
	}
	f := filesIn(t.TempDir())
	if err := os.WriteFile(f.Output, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return f, text
}

// The recorded output of real programs is read correctly, also after they have ended.
//
// shows: PL-80 SW-71
func TestRecordings(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.agent+"/"+s.name, func(t *testing.T) {
			f, _ := s.recorded(t)
			r := s.request("")
			res, finished, err := Completed(s.adapter(t), f, r.Schema)
			if !finished {
				t.Fatalf("not finished: %v", err)
			}
			s.check(t, res, err, true)
		})
	}
}

// A truncated output is not finished, and its session is known once it was printed.
//
// shows: PL-85
func TestTruncated(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.agent+"/"+s.name, func(t *testing.T) {
			_, text := s.recorded(t)
			r := newReader(nil, s.adapter(t).stream(), func(Event) {})
			for n := range text {
				if r.finished(nil) {
					t.Fatalf("finished after %d of %d bytes: %q", n, len(text), text[max(0, n-100):n])
				}
				res, _ := r.stream.result(r.lines.rest)
				if first := bytes.IndexByte(text, '\n'); n > first && res.Session == "" {
					t.Fatalf("no session after %d bytes", n)
				}
				r.lines.write(text[n : n+1])
			}
			if !r.finished(nil) {
				t.Error("not finished at the end")
			}
		})
	}
}

// A truncated file of one recording is not finished, at every length.
func TestTruncatedFiles(t *testing.T) {
	s := claudeScenarios()[2]
	s.agent = "claude"
	f, text := s.recorded(t)
	for n := len(text); n >= 0; n-- {
		if err := os.Truncate(f.Output, int64(n)); err != nil {
			t.Fatal(err)
		}
		res, finished, err := Completed(Claude{}, f, []byte(countSchema))
		if finished != (n == len(text)) || err != nil {
			t.Fatalf("%d of %d bytes: finished %v, %v", n, len(text), finished, err)
		}
		if !finished && res.Structured != nil {
			t.Fatalf("%d of %d bytes: an incomplete answer: %s", n, len(text), res.Structured)
		}
	}
	if err := os.Remove(f.Output); err != nil {
		t.Fatal(err)
	}
	if _, finished, err := Completed(Claude{}, f, nil); finished || err != nil {
		t.Errorf("no file: finished %v, %v", finished, err)
	}
}

// Events arrive in order and are short.
func TestEvents(t *testing.T) {
	for agent, want := range map[string]string{
		"claude": `started; tool_use Write; usage 130; tool_result; tool_use Bash; usage 260; tool_result; text All done.; usage 390`,
		"codex":  `started; tool_use command_execution; tool_result command_execution; text All done.; usage 240`,
		"gemini": `started; tool_use write_file; tool_result write_file; text All done.; usage 240`,
	} {
		t.Run(agent, func(t *testing.T) {
			s := scenario{agent: agent, name: "tools"}
			_, text := s.recorded(t)
			var list []Event
			r := newReader(nil, s.adapter(t).stream(), gather(&list))
			r.lines.write(text)
			var got []string
			for _, e := range list {
				line := string(e.Kind)
				switch e.Kind {
				case EventText:
					line += " " + e.Text
				case EventUsage:
					line += fmt.Sprint(" ", e.Usage.Total())
				case EventToolUse, EventToolResult:
					line = strings.TrimSpace(line + " " + e.Tool)
					if e.ToolID == "" || e.Failed {
						t.Errorf("%+v", e)
					}
				}
				if e.At.IsZero() {
					t.Errorf("%+v has no time", e)
				}
				got = append(got, line)
			}
			if strings.Join(got, "; ") != want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
			}
		})
	}
}

// A retry is reported with its wait.
func TestRetryEvents(t *testing.T) {
	s := scenario{agent: "claude", name: "rate"}
	_, text := s.recorded(t)
	var list []Event
	r := newReader(nil, Claude{}.stream(), gather(&list))
	r.lines.write(text)
	for _, e := range list {
		if e.Kind == EventRetry && e.Attempt == 1 && e.Wait.Seconds() == 1 && e.Text == "rate_limit" {
			return
		}
	}
	t.Errorf("no retry in %+v", list)
}

// The recordings contain nothing specific to the machine on which they were made.
func TestRecordingsAreClean(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.jsonl")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d records, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, mark := range []string{"/tmp/", "/root", "/Users/", "@", "sk-ant"} {
			if i := bytes.Index(text, []byte(mark)); i >= 0 {
				t.Errorf("%s: %q", file, text[max(0, i-40):min(len(text), i+40)])
			}
		}
	}
}
