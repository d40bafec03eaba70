package model

// Node is anything with a global id.
type Node interface{ NodeID() string }
