package catalog

// The operators that the scheduler knows and definitions offer (multivalue
// operators specification).
const (
	operatorIn    = "<in>"
	operatorOr    = "<or>"
	operatorAllIn = "<all-in>"
)

func isOperator(text string) bool {
	return text == operatorIn || text == operatorOr || text == operatorAllIn
}
