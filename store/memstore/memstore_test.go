package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/store/memstore"
	"lockkeeper/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the suite shows, each by the test in it that says so:
//
// shows: CF-1 CF-3 CF-4 CF-9 CF-10 CF-14 CF-18 CF-24 DL-3 DL-4 DL-6 DL-7 DL-11 DL-12
// shows: DL-13 DL-14 DL-16 DL-17 DL-18 DL-19 DL-20 DL-52 DL-53 DL-55 DL-56
// shows: DL-58 DL-66 DL-70 DL-71 DL-72 DL-74 DL-75 DL-76 GP-1 GP-4 GP-6 GP-7
// shows: GP-8 GP-13 GP-14 GP-15 GP-32 GP-33 GP-44 PL-38 PL-39 PL-40 PL-41 PL-42
// shows: PL-44 PL-45 PL-46 PL-47 PL-51 SW-13 SW-15 SW-16 SW-17 SW-18 SW-19 SW-31 SW-39 SW-42
// shows: SW-43 SW-44 SW-45 SW-46 SW-47 SW-48 SW-49 SW-50 SW-57 SW-58 SW-71 SW-72 SW-73 SW-81
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
