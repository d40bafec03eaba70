package main

import "github.com/cadastre-dev/cadastre/bench/measured"

// judge compares each work on the last binary with its goal, the peer and the
// first binary.
func (b *bench) judge(lines []measured.Line) {
	last, first := b.binaries[len(b.binaries)-1].name, b.binaries[0].name
	for _, work := range b.works {
		for _, database := range b.databases {
			own, peer := measured.Find(lines, work.Name, database, last), measured.Find(lines, work.Name, database, "")
			if own == nil {
				continue
			}
			if len(b.binaries) > 1 {
				own.Figures["timesTheFirst"] = times(own, measured.Find(lines, work.Name, database, first))
			}
			if peer != nil && len(own.Rates) > 0 {
				own.Figures["timesThePeer"] = times(own, peer)
				if own.CPU() > 0 {
					own.Figures["timesThePeersCpu"] = peer.CPU() / own.CPU()
				}
			}
			if own.Goal = work.Goal.String(); own.Goal != "" && own.Reached == "" {
				own.Reached = work.Goal.reached(own, peer != nil, measured.Find(lines, work.Goal.Than, database, last))
			}
		}
	}
}

// reached returns whether a goal is reached: yes, no, or unknown without the peer
// or the other work.
func (g goal) reached(own *measured.Line, met bool, than *measured.Line) string {
	of := own.Figures
	switch {
	case g.Median > 0 && of["medianMs"] > g.Median,
		g.Rate > 0 && of["perSecond"] < g.Rate,
		met && of["timesThePeer"] < g.Ratio,
		met && of["timesThePeersCpu"] > 0 && of["timesThePeersCpu"] < g.CPU,
		g.Times > 0 && than != nil && of["medianMs"] > g.Times*than.Figures["medianMs"]:
		return "no"
	case g.Ratio > 0 && !met, g.Times > 0 && than == nil:
		return "unknown"
	}
	return "yes"
}

// times returns the ratio of two rates: the median of the ratios of rounds, since
// both met the same machine in a round.
func times(one, other *measured.Line) float64 {
	if other == nil {
		return 0
	}
	var ratios []float64
	for i := range min(len(one.Rates), len(other.Rates)) {
		ratios = append(ratios, one.Rates[i]/other.Rates[i])
	}
	return measured.Median(ratios)
}
