// Package fanout asks the copies of a range.
//
// A [HedgedRequest] asks some of them and the next one when that takes longer
// than usual; its [Decider] says when it has enough. [AnyCopy] is the hedged
// request that any copy can answer. A [FailoverStream] reads rows from one copy,
// ahead of who uses them, and goes on from another one when that breaks off.
// What a request asks, and what it makes of the answers, is its own.
package fanout
