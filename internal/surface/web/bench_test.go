package web

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"lockkeeper/internal/surface/access"
)

// BenchmarkBoard500 measures a request for a board of 500 units.
func BenchmarkBoard500(b *testing.B) {
	s := middle(usual)
	row := s.board.Units[1]
	s.board.Units = nil
	for i := range 500 {
		row.Name = fmt.Sprintf("admin/controller%d", i)
		s.board.Units = append(s.board.Units, row)
	}
	d, err := New(Options{View: s, Now: func() time.Time { return noon }})
	if err != nil {
		b.Fatal(err)
	}
	ask := httptest.NewRequest("GET", "/board", nil)
	ask = ask.WithContext(access.With(ask.Context(), access.Person{Name: "ann", Role: access.Operator}))
	served := mux(d)
	for b.Loop() {
		w := httptest.NewRecorder()
		served.ServeHTTP(w, ask)
		b.ReportMetric(float64(w.Body.Len()), "bytes")
	}
}
