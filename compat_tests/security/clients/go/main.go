// Go's clients of a locked broker (compat_tests/security/locked_clients.py): franz-go, kafka-go and sarama, each over TLS,
// with a login by SCRAM-SHA-512 or with a certificate of its own.
//
//	go_clients CLIENT < spec.json
//
// It writes the records of the spec, reads as many in a group, commits, and says in JSON lines on stdout where each
// record went and what was read. It ends with 1 and the library's error on stderr.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	endAfter       = 90 * time.Second
	requestTimeout = 10 * time.Second
	sessionTimeout = 10 * time.Second
)

// Record is what is written; its only header, "number", is its place in the spec.
type Record struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Spec is what the test wants. Files are PEM; a login has a user, a certificate of the client's own has two files.
type Spec struct {
	Bootstrap   string   `json:"bootstrap"`
	CA          string   `json:"ca"`
	Certificate string   `json:"certificate"`
	Key         string   `json:"key"`
	User        string   `json:"user"`
	Password    string   `json:"password"`
	Topic       string   `json:"topic"`
	Group       string   `json:"group"`
	Records     []Record `json:"records"`
}

var clients = map[string]func(context.Context, Spec) error{
	"franz-go": franz,
	"kafka-go": kafkaGo,
	"sarama":   saramaClient,
}

func main() {
	client, ok := clients[os.Args[1]]
	if !ok {
		fail(fmt.Errorf("no such client: %s", os.Args[1]))
	}
	var spec Spec
	if err := json.NewDecoder(os.Stdin).Decode(&spec); err != nil {
		fail(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endAfter)
	defer cancel()
	if err := client(ctx, spec); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// tls trusts the CA of the spec alone, and checks the broker's name as Go does by default.
func (s Spec) tls() (*tls.Config, error) {
	pem, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in " + s.CA)
	}
	if s.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// --- what is said

var stdout sync.Mutex

func say(what map[string]any) {
	text, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	stdout.Lock()
	defer stdout.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func sent(number int, partition int32, offset int64) {
	say(map[string]any{"event": "sent", "number": number, "partition": partition, "offset": offset})
}

func read(partition int32, offset int64, key, value []byte, headers map[string]string) {
	say(map[string]any{
		"event": "read", "partition": partition, "offset": offset,
		"key": string(key), "value": string(value), "headers": headers,
	})
}
