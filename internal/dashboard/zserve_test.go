package dashboard

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"lockkeeper/internal/access"
)

func TestServeForLooking(t *testing.T) {
	where := os.Getenv("DASH_LOOK")
	if where == "" {
		t.Skip()
	}
	mux := http.NewServeMux()
	for i, s := range []*scene{empty(), middle(usual), finished(), failed(), middle(hostile)} {
		d, err := New(Options{Look: s, Now: func() time.Time { return noon }, Failed: func(err error) { fmt.Println(err) }})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 7800+i))
		if err != nil {
			t.Fatal(err)
		}
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
			if r.URL.Path == "/events" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, ": hi\n\n")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return
			}
			d.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Person{Name: "anna", Role: access.Admin})))
		}))
	}
	_ = mux
	time.Sleep(40 * time.Minute)
}
