// Command lockkeeper-scripted-agent is an agent without a model, for demonstrations and
// tests. It speaks the protocol of `claude -p` and plays the script that
// LOCKKEEPER_AGENT_SCRIPT names.
package main
