// Package program describes the agent programs that Lockkeeper knows: where each one keeps its
// login and settings, how its processes are recognized, and which files make it start other
// programs. It contains facts only. Package agent calls the programs, and packages owndir,
// protect, process and config read what they need from the table here.
//
// To add a program, add an entry to the table, an adapter for its protocol in package agent,
// and a line in agent.adapters.
package program
