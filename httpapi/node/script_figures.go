package node

import (
	"fmt"

	"divan/shard/script"
)

// scriptFigures lists the metrics about what functions of design documents wait for.
func scriptFigures(s script.Stats) []runtimeFigure {
	var waiting, given, refused []runtimeFigure
	for k, q := range s.Queues {
		label := fmt.Sprintf("{kind=%q}", script.KindNames[k])
		waiting = append(waiting, runtimeFigure{"couchdb_javascript_waiting", "uses of JavaScript that wait for an engine", "gauge", label, float64(q.Waiting)})
		given = append(given, runtimeFigure{"couchdb_javascript_uses_total", "uses of JavaScript that have got an engine", "counter", label, float64(q.Given)})
		refused = append(refused, runtimeFigure{"couchdb_javascript_refused_total", "uses of JavaScript that have waited too long for an engine", "counter", label, float64(q.Refused)})
	}
	return append(append(append(waiting, given...), refused...),
		runtimeFigure{"couchdb_javascript_turns_waiting", "functions that wait for a processor", "gauge", "", float64(s.Turns.Waiting + s.ValidationTurns.Waiting)},
		runtimeFigure{"couchdb_javascript_turns_total", "turns on a processor, of 10 ms at most while others wait", "counter", "", float64(s.Turns.Given + s.ValidationTurns.Given)},
		runtimeFigure{"couchdb_javascript_turns_refused_total", "functions that have waited too long for a processor", "counter", "", float64(s.Turns.Refused + s.ValidationTurns.Refused)},
		runtimeFigure{"couchdb_javascript_lists_parked", "list functions that wait for their clients or for rows, while others have their engines' places", "gauge", "", float64(s.Parked)},
		runtimeFigure{"couchdb_javascript_lists_cut_total", "clients that were cut off because they took nothing of a list", "counter", "", float64(s.ListsCut)},
	)
}
