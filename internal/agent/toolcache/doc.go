// Package toolcache keeps what trusted commands add to the caches of tools, such as
// compiled packages, so that later commands in sandboxes need not make it again.
//
// A Store belongs to one codebase. It has layers, one for each trusted command that
// added something:
//
//	dir/lock              held shared while layers are in use
//	dir/filling-*         the layer that a running command fills
//	dir/000001/PATH/upper what the command added to the cache at PATH
//
// Invariants:
//
//  1. Only Keep adds a layer, and its caller runs a trusted command. What other
//     commands write is discarded by the sandbox. So no agent can change what a later
//     command finds in a cache.
//  2. No layer changes, and none is removed while a command uses it.
//  3. The content of the user's own cache has priority. So a layer never hides what
//     the user's tools add later.
//  4. The store has at most maxLayers layers and a limited size. A full store starts over.
package toolcache
