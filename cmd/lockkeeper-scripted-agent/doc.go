// Command lockkeeper-scripted-agent is an agent without a model, for demonstrations and
// tests: it speaks the protocol of `claude -p` and does what the script says that
// LOCKKEEPER_AGENT_SCRIPT names.
package main
