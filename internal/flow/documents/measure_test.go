package documents

import (
	"fmt"
	"testing"
)

func BenchmarkWrite(b *testing.B) {
	f := Open(b.TempDir()).Unit("posts").Batch("b")
	for b.Loop() {
		if _, err := f.Write(b.Context(), "apply.json", result{Count: 1}, About{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	f := Open(b.TempDir()).Unit("posts").Batch("b")
	if _, err := f.Write(b.Context(), "apply.json", result{Count: 1}, About{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := f.Read(b.Context(), "apply.json", checkResult); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecordAmong5000 measures recording a decision in a long list.
func BenchmarkRecordAmong5000(b *testing.B) {
	s := Open(b.TempDir())
	entries := make([]PastDecision, 5000)
	for i := range entries {
		entries[i] = PastDecision{Description: fmt.Sprintf("Item number %d of the list.", i), Controller: "posts", Decision: Rejected, Timestamp: at(1)}
	}
	if err := s.Record(b.Context(), entries...); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if err := s.Record(b.Context(), PastDecision{Description: fmt.Sprintf("new %d", i), Controller: "users", Decision: Rejected}); err != nil {
			b.Fatal(err)
		}
	}
}
