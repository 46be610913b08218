package ring

// Replica is one copy of one range as the map of one moment has it: what there is to know to
// ask it.
type Replica struct {
	Range
	Copy
	Name       string // where the copy lies, the same on every node that holds one
	Generation uint64 // of the map
}
