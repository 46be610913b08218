package meta

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// Fifty nodes form a cluster, and each answers for what another one made.
func TestFiftyNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 50)
		for i := range g.nodes {
			create(t, g.meta(i), fmt.Sprintf("db%d", i))
		}
		for i := range g.nodes {
			if _, err := g.meta(i).Require(t.Context(), fmt.Sprintf("db%d", (i+7)%50)); err != nil {
				t.Errorf("node %d: %v", i, err)
			}
		}
		g.stop(g.leader())
		create(t, g.meta(g.follower()), "after")
	})
}
