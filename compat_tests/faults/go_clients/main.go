// Go's clients in the storm (compat_tests/faults/clients/others.py): producers, transactions and group members of franz-go and
// sarama. Each says in JSON lines on stdout what it received, and ends orderly on SIGTERM.
//
//	go_clients ROLE BOOTSTRAP TOPIC PARTITIONS RATE NAME
//
// RATE is in records or transactions a second. A record's value begins with NAME and its number.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	abortShare         = 0.2
	recordsMax         = 4
	retryPause         = 300 * time.Millisecond
	requestTimeout     = 5 * time.Second
	deliveryTimeout    = 90 * time.Second
	transactionTimeout = 15 * time.Second
	sessionTimeout     = 6 * time.Second
	heartbeat          = 500 * time.Millisecond
	commitInterval     = 400 * time.Millisecond
	metadataAge        = 2 * time.Second
)

// Args are those of the command line.
type Args struct {
	bootstrap  []string
	topic      string
	partitions int
	pause      time.Duration
	name       string
}

var roles = map[string]func(Args){
	"franz":        franzProducer,
	"franz-txn":    franzTransactions,
	"franz-group":  franzMember,
	"franz-share":  franzShare,
	"sarama":       saramaProducer,
	"sarama-txn":   saramaTransactions,
	"sarama-group": saramaMember,
}

var (
	stopping = make(chan struct{})
	stdout   sync.Mutex
)

func main() {
	role, ok := roles[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such role:", os.Args[1])
		os.Exit(2)
	}
	partitions, err := strconv.Atoi(os.Args[4])
	check(err)
	rate, err := strconv.ParseFloat(os.Args[5], 64)
	check(err)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		close(stopping)
	}()
	pause := time.Duration(float64(time.Second) / rate)
	role(Args{strings.Split(os.Args[2], ","), os.Args[3], partitions, pause, os.Args[6]})
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// goOn waits for the next turn; false when it is time to end.
func (a Args) goOn() bool {
	select {
	case <-stopping:
		return false
	case <-time.After(a.pause):
		return true
	}
}

// value is what compat_tests/faults/history.py takes for a record's identity, of that size at the least.
func (a Args) value(number, size int) string {
	head := fmt.Sprintf("%s.%d.", a.name, number)
	return head + strings.Repeat("-", max(0, size-len(head)))
}

func sizeOf(number int) int { return 50 + number*37%400 }

// --- what is said

type line map[string]any

func say(what line) {
	text, err := json.Marshal(what)
	check(err)
	stdout.Lock()
	defer stdout.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func note(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05.000 ")+format+"\n", arguments...)
}

func acknowledged(number int, partition int32, offset int64) {
	say(line{"event": "acknowledged", "number": number, "partition": partition, "offset": offset})
}

func refused(number int, err error) {
	note("%d: %v", number, err)
	say(line{"event": "refused", "number": number, "why": err.Error()})
}

func read(partition int32, offset int64, value []byte) {
	record := strings.TrimRight(string(value), "-")
	say(line{"event": "read", "partition": partition, "offset": offset, "record": record})
}

// --- transactions

// Record is a partition and a number.
type Record [2]int

// drawn is a transaction's records, and whether it is to be committed.
func (a Args) drawn(next *int) (records []Record, commit bool) {
	for range 1 + rand.Intn(recordsMax) {
		records = append(records, Record{rand.Intn(a.partitions), *next})
		*next++
	}
	return records, rand.Float64() >= abortShare
}

// ended says what became of a transaction; an error leaves that open.
func ended(commit bool, err error, records []Record) {
	outcome := "aborted"
	if err != nil {
		outcome = "unknown"
		note("a transaction: %v", err)
	} else if commit {
		outcome = "committed"
	}
	say(line{"event": "ended", "outcome": outcome, "records": records})
}
