package model

// Node is a value with a global id.
type Node interface{ NodeID() string }
