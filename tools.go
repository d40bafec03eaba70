//go:build tools

package main

import (
	_ "entgo.io/ent/entc"
	_ "github.com/99designs/gqlgen"
)
