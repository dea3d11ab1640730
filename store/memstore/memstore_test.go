package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/store/memstore"
	"lockkeeper/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shows: SW-50 PL-46
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Fixture{
		Open: func(_ *testing.T, clock *storetest.Clock) lockkeeper.Store {
			return memstore.New("test", memstore.Options{Now: clock.Now})
		},
		Random: 100_000,
		Drawn:  true,
		Rounds: 200,
	})
}
