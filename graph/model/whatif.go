package model

import "github.com/cadastre-dev/cadastre/placement"

// WhatIf is a world with changes that are not stored.
type WhatIf struct{ *placement.Foreseen }
