// Package agents has the commands that connect coding agents: init, hook, mcp and off.
package agents
