package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"lockkeeper/internal/compat/lease"
)

// A tool that must not run twice acquires a lease file while it runs, and renews it
// between the phases of its work.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	opt := lease.Defaults() // lasts 30 minutes, with 2 minutes of grace
	opt.Owner = "tidy_up"
	l := lease.New(filepath.Join(dir, lease.Default), opt)
	if err := l.Acquire(ctx, lease.DefaultTimeout); err != nil {
		log.Fatal(err) // who holds it, since when, until when
	}
	defer l.Release(ctx)

	other := lease.New(l.Path(), lease.Options{Owner: "another run", TTL: time.Hour})
	var held *lease.HeldError
	if err := other.Acquire(ctx, 0); errors.As(err, &held) {
		fmt.Println("held by", held.By.Owner)
	}

	for _, phase := range []string{"root routing", "docs hygiene"} {
		if err := l.Phase(ctx, phase); err != nil {
			log.Print(err) // a *LostError: stop
		}
		fmt.Println(phase)
	}
	fmt.Println(l.Metrics().Renewals, "renewals")
	// Output:
	// held by tidy_up
	// root routing
	// docs hygiene
	// 2 renewals
}
