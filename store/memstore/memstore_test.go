package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/store"
	"lockkeeper/store/memstore"
	"lockkeeper/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tests of the suite cite the requirements that they show.
//
// shows: SW-50
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Fixture{
		Open: func(_ *testing.T, clock *storetest.Clock) store.Store {
			return memstore.New("test", memstore.Options{Now: clock.Now})
		},
		Random: 100_000,
		Drawn:  true,
		Rounds: 200,
	})
}
