// Package access holds who asks and what they may do: viewers, the one table of
// permissions, an operator's policy, and visibility.
package access
