// Package server has the commands of the dashboard and the HTTP API: serve, login and
// token. Other commands serve the dashboard during their own work: see
// Dashboard.
package server
