// Package page holds orders, cursors, pages of lists, and global ids.
package page
