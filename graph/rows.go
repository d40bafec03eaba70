package graph

import (
	"cmp"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// rowErrors returns the problems of one item of a bulk mutation, with the codes
// that errors have.
func rowErrors(problems problem.Problems) []*model.RowError {
	errors := make([]*model.RowError, len(problems))
	for i, one := range problems {
		errors[i] = &model.RowError{Code: model.RowErrorCode(codeOf(cmp.Or(one.Kind, problem.ErrInvalidInput))),
			Message: text.Clip(one.Message, maxMessageBytes)}
		if one.Field != "" {
			errors[i].Field = &problems[i].Field
		}
	}
	return errors
}
