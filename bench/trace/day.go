package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The trace has a line for each bin of 300 seconds.
const (
	binSeconds = 300
	daySeconds = 24 * 60 * 60
	bins       = daySeconds / binSeconds
)

// maxMachines is the maximum number of consumers in a call.
const maxMachines = 1000

// flavor is the size of a machine or host: processors, and memory in MiB.
type flavor struct{ processors, memory int }

// call is a call of a day. It places machines of one flavor that a tenant asked
// for together. Without a flavor the machines leave.
type call struct {
	flavor   flavor
	machines []int
}

// day is the first whole day of the trace.
type day struct {
	flavors []flavor // of machines in the order of their arrivals
	calls   []call
	leaving int
}

// azureTrace is the lines of a folder with the trace.
type azureTrace struct {
	flavors          map[string]flavor
	stays            map[string]int // bins by interval, for machines that leave before the trace ends
	arrivals, lasted [][2]string    // time and list with commas
}

func readDay(folder string) (*day, error) {
	trace, err := readAzure(folder)
	if err != nil {
		return nil, err
	}
	first := slices.IndexFunc(trace.arrivals, func(line [2]string) bool {
		seconds, err := strconv.Atoi(line[0])
		return err == nil && seconds%daySeconds == 0
	})
	if first < 0 || first+bins > min(len(trace.arrivals), len(trace.lasted)) {
		return nil, fmt.Errorf("%s has no whole day", folder)
	}
	var d day
	leaving := make([][]int, bins)
	for bin := range bins {
		err := d.arrive(trace, first+bin, func(machine, stay int) {
			if end := bin + stay; end < bins {
				leaving[end] = append(leaving[end], machine)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("at %s: %w", trace.arrivals[first+bin][0], err)
		}
		for machines := range slices.Chunk(leaving[bin], maxMachines) {
			d.calls = append(d.calls, call{machines: machines})
		}
		d.leaving += len(leaving[bin])
	}
	return &d, nil
}

// arrive adds the calls of a line. It calls leave for each machine that leaves
// before the trace ends, with the machine's stay in bins.
func (d *day) arrive(trace *azureTrace, line int, leave func(machine, stay int)) error {
	arrivals, lasted := trace.arrivals[line], trace.lasted[line]
	letters, ends := strings.Split(arrivals[1], ","), strings.Split(lasted[1], ",")
	if arrivals[0] != lasted[0] || len(letters) != len(ends) {
		return errors.New("arrivals and durations do not match")
	}
	before := ""
	for i, letter := range letters {
		of, ok := trace.flavors[letter]
		switch {
		case ok:
			d.add(of, letter == before)
			if stay, ok := trace.stays[ends[i]]; ok {
				leave(len(d.flavors)-1, stay)
			}
		case letter != "|" && letter != "":
			return fmt.Errorf("unknown flavor %q", letter)
		}
		before = letter
	}
	return nil
}

// add adds a machine: to the last call if it is like the machine before it and
// the call has room, otherwise to a new call.
func (d *day) add(of flavor, isLike bool) {
	if !isLike || len(d.calls[len(d.calls)-1].machines) == maxMachines {
		d.calls = append(d.calls, call{flavor: of})
	}
	last := &d.calls[len(d.calls)-1]
	last.machines = append(last.machines, len(d.flavors))
	d.flavors = append(d.flavors, of)
}

// hosts returns the number and size of hosts. At its peak the day uses about 90 %
// of them. A host has room for every flavor.
func (d *day) hosts() (number int, size flavor) {
	var now, peak, largest flavor
	for _, one := range d.calls {
		for _, machine := range one.machines {
			of := d.flavors[machine]
			if now = now.plus(of); one.flavor == (flavor{}) {
				now = now.minus(of).minus(of)
			}
			peak, largest = peak.atLeast(now), largest.atLeast(of)
		}
	}
	const processors, percent = 64, 90
	number = (peak.processors*100-1)/(percent*processors) + 1
	return number, flavor{processors, peak.memory * 100 / percent / number}.atLeast(largest)
}

func (f flavor) plus(of flavor) flavor {
	return flavor{f.processors + of.processors, f.memory + of.memory}
}
func (f flavor) minus(of flavor) flavor {
	return flavor{f.processors - of.processors, f.memory - of.memory}
}

func (f flavor) atLeast(of flavor) flavor {
	return flavor{max(f.processors, of.processors), max(f.memory, of.memory)}
}

// readAzure reads the trace. Where the interval of a duration is longer than a bin,
// a machine stays until the end of the interval.
func readAzure(folder string) (*azureTrace, error) {
	trace := azureTrace{flavors: map[string]flavor{}, stays: map[string]int{}}
	var sizes, intervals [][2]string
	for name, into := range map[string]*[][2]string{
		"flavor_map.txt": &sizes, "interval_map.txt.gz": &intervals,
		"v1.test.txt.gz": &trace.arrivals, "v1.test.durations.txt.gz": &trace.lasted,
	} {
		var err error
		if *into, err = readPairs(filepath.Join(folder, name)); err != nil {
			return nil, err
		}
	}
	for _, line := range sizes {
		var processors int
		var gigabytes float64
		if _, err := fmt.Sscanf(line[0], "%d,%g", &processors, &gigabytes); err != nil {
			return nil, fmt.Errorf("flavor %s: %w", line[1], err)
		}
		trace.flavors[line[1]] = flavor{processors, int(gigabytes * 1024)}
	}
	for _, line := range intervals {
		seconds, err := strconv.Atoi(line[0])
		if err != nil {
			return nil, err
		}
		trace.stays["U"+line[1]] = seconds / binSeconds
	}
	return &trace, nil
}

// readPairs reads the two fields of each line.
func readPairs(path string) (pairs [][2]string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var reader io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if reader, err = gzip.NewReader(file); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(reader)
	for line := range strings.Lines(string(text)) {
		one, other, _ := strings.Cut(strings.TrimSpace(line), " ")
		pairs = append(pairs, [2]string{one, other})
	}
	return pairs, err
}
