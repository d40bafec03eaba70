// Package ent is the generated data model; its hand-written part is
// ent/schema. Only the room store imports it.
package ent

//go:generate go run -mod=mod entc.go
