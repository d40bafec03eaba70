// Package placement decides which resource providers can serve a request for
// resources, and whether a claim of resources may be written. Its rules follow
// the OpenStack Placement API at microversion 1.39, which comments call "the
// Placement reference", together with the any-traits specification.
//
// The package is pure. Every answer follows from its arguments alone, in the
// same order in every process. There are no databases, no GraphQL, no users, no
// clocks and no randomness in it. Counted steps bound its work (MaxSteps). Only
// FitsTogether and Rebalancing.Plan can be canceled by a context. Invalid
// inputs get Problems that name the argument.
//
// # Types
//
// A Provider has inventories, traits and aggregates, and may have a parent:
// providers form trees. An Inventory is a stock of one resource class; its
// Capacity is (total - reserved) × allocationRatio. A provider with the trait
// TraitShares may also be used from every tree with a member in one of its
// aggregates. A Consumer uses resources: each Allocation is an amount of a
// class on a provider.
//
// A World holds all providers as one immutable value. With returns the World
// after an Update; readers of the old one are not disturbed.
//
// A Request asks for amounts in groups. A suffixed group is served by one
// provider; each class of the unsuffixed group is served by one provider, which
// may differ from class to class. All providers of a Candidate must be usable
// from one root, its anchor. Candidates returns the candidates page by page in
// one total order, in which a Position usually survives changes of the world;
// Count counts the candidates; Explain counts the providers that each
// constraint eliminates; Fits counts how many consumers fit together; Failures
// and Draining find out which consumers fit elsewhere without some trees;
// Rebalancing plans moves after which more consumers fit; World.Filter selects
// single providers, without groups and sharing.
//
// # How candidates are found
//
// A request is compiled to a plan over dense ids, with one slot for each
// provider to be chosen. For each anchor the search lists every slot's options
// and assigns them depth first. It prunes where the traits, same-subtree
// constraints or capacities of the remaining options cannot suffice (search.go,
// matching.go). If few providers, all without TraitShares, can serve a slot,
// only the roots of their trees are anchors.
//
// # The ledger
//
// A Claim replaces the allocations of its consumers, all or none. A Ledger is
// the part of the allocations that claims concern: their consumers with all of
// their allocations, and every provider involved. The caller reads it under
// locks, applies claims and reshapes one after the other, and writes the
// changes back. The old allocations of a claim's consumers are subtracted
// before the new ones are checked, so that a claim can move units from one of
// its consumers to another. A consumer's generation grows with each claim. A
// provider's generation grows with each claim that allocates on it or clears a
// consumer with allocations on it.
//
// # Laws
//
// These hold for every world and request, and are tested on random ones:
//
//   - The candidates are exactly the ones that the definitions allow, in the
//     defined order (TestCandidatesAreThoseOfTheDefinitions).
//   - Pages concatenate to the whole (TestPagesConcatenateToTheWhole).
//   - Every candidate can be claimed on the world as it is
//     (TestEveryCandidateCanBeClaimed).
//   - A stricter request and more use never add candidates
//     (TestStricterRequestNeverAddsCandidates, TestMoreUseNeverAddsCandidates).
//   - The order of providers and of lists does not matter
//     (TestOrderOfProvidersAndListsDoesNotMatter).
//   - Preferences order the candidates of a request by score, weights of 0 change
//     nothing, and alternatives are the plain requests one after the other
//     (TestPreferencesOrderHosts, TestWeightsOfZeroChangeNothing,
//     TestAlternativesAreTriedInOrder, TestOneAlternativeIsThePlainGroup).
//   - The listed candidates of a shape are its first ones, and a choice on like
//     providers is the first candidate of all
//     (TestEachShapeIsListedByItsFirstCandidates,
//     TestPlacingOnLikeDevicesTakesTheFirstCandidates).
//   - A placing takes the first candidate, or the first on a host that its policy
//     allows (TestPlacingTakesTheFirstCandidates,
//     TestPolicyRestrictsTheFirstCandidates).
//   - A World after any updates equals one built from scratch, and no World
//     changes (TestWithEqualsNewWorld).
//   - The largest number of consumers that fit together lies between AtLeast
//     and AtMost of a Fit, and a placing places AtLeast
//     (TestFitsLiesBetweenItsBounds).
//   - AtMost grows only with a limit that the Fit names
//     (TestOnlyLimitsRaiseWhatFits).
//   - The consumers that do not fit after the loss of a host are the ones that
//     find no candidate when all are placed one after the other
//     (TestSurvivalIsDrainingEachHostInTurn). Losses that are kept and updated
//     equal losses that are computed as a whole (TestKeptSurvivalIsSurvival).
//   - A DrainPlan places each consumer as a placing does, and its moves fit a
//     ledger in which the consumers of a wave have both places
//     (TestDrainPlanIsWhatThenHappens).
//   - Each move of a Rebalancing is the best of all, fits a ledger in which the
//     consumer has both places, and has the Fits that are counted after it
//     (TestRebalancingMakesTheBestMove, TestRebalancingOfPlainHosts).
//   - An explanation leaves no provider exactly when there is no candidate
//     (TestExplainAgreesWithTheAnswer).
package placement
