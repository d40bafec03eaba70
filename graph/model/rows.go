package model

// RowError is one error of an item of a bulk mutation.
type RowError struct {
	Code    RowErrorCode
	Field   *string
	Message string
}

// RowErrorCode is the kind of refusal of an item of a bulk mutation: the code
// that a separate mutation would return.
type RowErrorCode string
