package placement

// Names are the traits and resource classes that exist, standard and custom.
type Names struct {
	Traits          []string
	ResourceClasses []string
}
