// Package access defines viewers and their rights: the table of permissions, an
// operator's policy, and visibility.
package access
