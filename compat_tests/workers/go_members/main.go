// Members of groups of franz-go (compat_tests/support/groups), many in one process. Each says what happens to it, a JSON
// line an event, with the nanoseconds of CLOCK_MONOTONIC.
//
//	start NAME KEY=VALUE...   settings of a consumer by Kafka's names, and ours: topics=A,B or pattern=RE2;
//	                          commit=sync|async|none, after each batch
//	commit NAME               all that was handed out so far
//	close NAME                as an application that ends
//
// It ends with its input.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

func main() {
	members := map[string]*member{}
	orders := bufio.NewScanner(os.Stdin)
	orders.Buffer(nil, 1<<20)
	for orders.Scan() {
		words := strings.Fields(orders.Text())
		switch words[0] {
		case "start":
			members[words[1]] = startMember(words[1], words[2:])
		case "commit":
			members[words[1]].commits <- struct{}{}
		case "close":
			members[words[1]].close()
		default:
			panic("no such order: " + orders.Text())
		}
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// --- what is said

type line map[string]any

var stdout sync.Mutex

func say(member, event string, more line) {
	stdout.Lock()
	defer stdout.Unlock()
	var now unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	what := line{"member": member, "event": event, "time_ns": now.Nano()}
	for key, value := range more {
		what[key] = value
	}
	text, err := json.Marshal(what)
	check(err)
	os.Stdout.Write(append(text, '\n'))
}

func note(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
}
