package model

// RowError is one thing that is wrong with an item of a mutation for many.
type RowError struct {
	Code    RowErrorCode
	Field   *string
	Message string
}

// RowErrorCode is the kind of refusal of an item of a mutation for many: the code
// that an error would have.
type RowErrorCode string
