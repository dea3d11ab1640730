// Package top is the full-screen view of a codebase in a terminal: lanes, progress, decisions,
// failures, work, locks and kept changes. Pages and answers have the keys of the dashboard. The
// command top shows it, and run shows it while a terminal is attended.
//
//	events of the store ─▶ reader ─▶ model (keys, pages, acts) ─▶ terminal
//	news of a run       ─▶ Tell ───▶
//
// Invariants:
//
//  1. Everything shown comes from package view, and every act is one of package acts. An answer
//     names the version of the decision that is on the screen, and follows a confirmation.
//  2. Text that agents, files and people wrote never reaches the terminal as it is: each line
//     is cleaned first, and is never wider than the terminal.
//  3. The terminal is restored when the screen closes, also after a panic.
//  4. Nothing is read while nothing happens, except twice a minute. While agents run, their
//     last lines are read every two seconds.
//
// Goroutines: a Screen owns those of its program and one reader. Close has ended them when it
// returns.
package top
