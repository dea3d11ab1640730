// Package server has the commands of the dashboard and the HTTP API: serve, login and
// token. Other commands serve the dashboard beside their own work with Beside.
package server
