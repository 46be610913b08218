// Package sim runs whole clusters in one process: real nodes in a bubble of
// testing/synctest, on a simulated network and file systems that lose what was
// not synced, clients that do random things, and a plan of faults that follows
// from a seed. In the end the history must keep the rules of package history.
//
//	DIVAN_SIM_SEEDS=20000 go test -timeout 0 ./test/sim
//	DIVAN_SIM_SEED=4711 DIVAN_SIM_LOG=sim.log go test -run Seeds ./test/sim
//
// A seed fixes the faults and what each client wants to do, not the order in
// which goroutines run: a violation may need the seed several times to show
// again. A seed that has failed is run 50 times more, and the test says how often
// it failed. By hand, with as few orders as Go allows:
//
//	make replay SEED=4711
package sim
