package overlay

import "testing"

func BenchmarkOpen(b *testing.B) {
	s, err := newStack(b.TempDir(), 1)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			f, err := s.open()
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
	b.Run("namespace", func(b *testing.B) {
		for b.Loop() {
			f, err := s.openInNamespace(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
}
