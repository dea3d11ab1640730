package storetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// fieldTests fail if a store does not store a field of a struct. They fill every field by
// reflection, store the value and read it back, so a new field is covered without a change
// here. Fields that are not stored on purpose are named here.
var fieldTests = []test{
	{"event", testEventFields},
	{"record", testRecordFields},
	{"record, in one round trip", testExpressFields},
	{"landing", testLandingFields},
	{"item", testItemFields},
	{"worker", testWorkerFields},
}

// A filler gives every field a distinct value that is not zero.
type filler struct{ n int64 }

func filled[T any](f *filler) *T {
	v := new(T)
	f.fill(reflect.ValueOf(v).Elem())
	return v
}

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Date(2026, 3, 4, 5, 6, 7, int(f.n)*1000, time.UTC)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("f", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(f.n)
	case reflect.Uint8: // sets the first value of an enumeration
		v.SetUint(1)
	case reflect.Uint32: // sets permission bits
		v.SetUint(0o400 | uint64(f.n)&0o77)
	case reflect.Uint64:
		v.SetUint(uint64(f.n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
		panic("a stored field of kind " + v.Kind().String() + ": extend the filler")
	}
}

// same compares two values field by field.
func same[T any](t *testing.T, what string, got, want *T) {
	t.Helper()
	if got == nil {
		t.Fatalf("%s: it is not stored", what)
	}
	g, w := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := range g.NumField() {
		if a, b := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: field %s is read as %+v, stored was %+v", what, g.Type().Field(i).Name, a, b)
		}
	}
}

func testEventFields(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	want := filled[lockkeeper.Event](&filler{})
	update(t, s, func(tx store.Tx) { want.Seq = get(tx.Append(*want)) })
	want.Space = s.Space()
	view(t, s, func(r store.Reader) {
		got := get(r.Events(store.EventQuery{After: want.Seq - 1, Limit: 1}))
		if len(got) != 1 {
			t.Fatalf("%d events", len(got))
		}
		same(t, "appended", &got[0], want)
	})
}

// record returns a filled record in the form in which it is read back.
func record(s store.Store, f *filler) *store.Record {
	rec := filled[store.Record](f)
	rec.Space = s.Space()
	rec.Token, rec.Released = "", false // never stored: the token is secret, and released records are deleted
	return rec
}

func testRecordFields(t *testing.T, f Fixture) {
	s, fill := open(t, f, NewClock()), &filler{}
	want := record(s, fill)
	stored := func(what string, change func(store.Tx)) {
		t.Helper()
		update(t, s, change)
		view(t, s, func(r store.Reader) {
			same(t, what, get(r.Get(want.ID)), want)
		})
	}
	stored("inserted", func(tx store.Tx) {
		own := *want
		check(tx.Insert(&own))
	})
	next := record(s, fill)
	next.ID, next.Ticket, next.Locks = want.ID, want.Ticket, want.Locks
	want = next
	stored("saved", func(tx store.Tx) { check(tx.Save(want)) })
	locks := record(s, fill).Locks
	stored("with other locks", func(tx store.Tx) {
		check(tx.SetLocks(want, locks))
		want.Locks = locks
	})
}

func testExpressFields(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	x, ok := s.(store.FastPath)
	if !ok {
		t.Skip("the store has no express path")
	}
	want := record(s, &filler{})
	want.ID, want.State, want.WaitsOn, want.Blockers = ident(1), store.StateHeld, 0, 0 // the values of a new grant
	ev := filled[lockkeeper.Event](&filler{})
	if granted, err := x.TryGrant(t.Context(), want, *ev); !granted || err != nil {
		t.Fatalf("admitted %v, %v", granted, err)
	}
	view(t, s, func(r store.Reader) {
		got := get(r.Get(want.ID))
		same(t, "admitted", got, want)
		events, err2 := r.Events(store.EventQuery{After: want.Fence - 1, Limit: 1})
		if len(events) != 1 || err2 != nil {
			t.Fatalf("%d events, %v", len(events), err2)
		}
		ev.Seq, ev.Space, ev.At = want.Fence, s.Space(), events[0].At
		same(t, "admitted with", &events[0], ev)
	})
}

func testLandingFields(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	want := filled[lockkeeper.Landing](&filler{})
	update(t, s, func(tx store.Tx) { check(tx.InsertLanding(want.Clone())) })
	view(t, s, func(r store.Reader) {
		got := get(r.Landings(store.LandingQuery{Seq: want.Seq}))
		if len(got) != 1 {
			t.Fatalf("%d landings", len(got))
		}
		same(t, "inserted", got[0], want)
	})
}

func testItemFields(t *testing.T, f Fixture) {
	s, fill := open(t, f, NewClock()), &filler{}
	want := filled[lockkeeper.Item](fill)
	stored := func(what string, change func(store.Tx)) {
		t.Helper()
		update(t, s, change)
		view(t, s, func(r store.Reader) {
			same(t, what, get(r.Item(want.ID)), want)
		})
	}
	stored("inserted", func(tx store.Tx) { check(tx.InsertItem(want.Clone())) })

	// The fields before Phase and the time of queueing never change.
	next := filled[lockkeeper.Item](fill)
	next.ID, next.Escalated = want.ID, false
	kept, changed := reflect.ValueOf(want.Clone()).Elem(), reflect.ValueOf(next).Elem()
	phase, _ := kept.Type().FieldByName("Phase")
	for i := phase.Index[0]; i < kept.NumField(); i++ {
		if kept.Type().Field(i).Name != "QueuedAt" {
			kept.Field(i).Set(changed.Field(i))
		}
	}
	want = kept.Addr().Interface().(*lockkeeper.Item)
	stored("saved", func(tx store.Tx) { check(tx.SaveItem(next)) })
}

func testWorkerFields(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	want := filled[lockkeeper.Worker](&filler{})
	update(t, s, func(tx store.Tx) { check(tx.PutWorker(*want)) })
	view(t, s, func(r store.Reader) {
		got := get(r.Workers())
		if len(got) != 1 {
			t.Fatalf("%d workers", len(got))
		}
		same(t, "put", &got[0], want)
	})
}
