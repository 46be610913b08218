// Package auth finds out who sent a request, and keeps the rules of the
// authentication database.
//
// An [Authenticator] asks its handlers in the configured order (cookie, Basic,
// JSON web token, trusted proxy); the first one that recognises its credential
// decides. Passwords come from the documents of the authentication database
// and from the [admins] section. How a password becomes a hash and who sees what
// are pure functions on canonical JSON, see [UserWrite] and [UserRead]; what may be
// written is for a design document to say, see [UserDesign].
//
// Invariants, cited by tests:
//
//   - I1: the time that a comparison of a secret, a signature or a token
//     takes does not depend on where they differ.
//   - I2: an unknown name costs the same password hashing as a known one, and
//     is locked out the same way, so that neither time nor text tells which
//     names exist.
//   - I3: at most a fixed number of slow password hashes run at a time, and at
//     most a fixed number wait; the same credential sent many times at once is
//     hashed once. Peers take turns, and their names within (fair_semaphore.go).
//   - I4: a cached verification is bound to the stored hash that it was
//     verified against: with another hash, salt or iteration count it is not
//     found any more.
//   - I5: roles that start with an underscore come from the configuration, a
//     signed token or a trusted proxy, never from a user document (_metrics
//     excepted).
//   - I6: every cache has an upper bound.
//
// Long-lived goroutines: [Authenticator.Run] rewrites outdated hashes, and
// waits for one of its own that follows the changes of the authentication
// database. Everything else runs on the goroutine of a request.
//
// LOCKS: each cache has one mutex per part, held only for map and list
// operations; accounts.mu → the cache's mutex. No lock is held while hashing or
// reading the database.
package auth
