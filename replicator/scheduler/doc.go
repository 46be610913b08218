// Package scheduler says which replications of this node run when.
//
// A Queue decides, without clock and goroutines: at most MaxJobs run. A job that
// crashes waits longer each time. While others wait, every interval some
// continuous jobs that run make space for them. Which job comes first follows from
// how much its replicator database has had of late and how many shares it has
// (fair share scheduling after Kay and Lauder). A Runner does what a Queue
// decides.
//
// Goroutines: Runner.Run is one, and starts one for each job that runs; jobs that
// wait have none.
package scheduler
