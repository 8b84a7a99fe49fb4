// Clients of a schema registry, each in a conversation of its own.
//
//	go_registry CLIENT URL
//
// CLIENT is franz-go or confluent. The response of the registry is one JSON object on standard output; an error that was
// not expected ends the program with it on standard error.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// report is what a test compares. Errors are by the name of the step that must fail.
type report struct {
	IDs        []int          `json:"ids"`
	Versions   []int          `json:"versions"`
	Subjects   []string       `json:"subjects"`
	Latest     string         `json:"latest"`
	References []string       `json:"references"`
	Compatible []bool         `json:"compatible"`
	Level      string         `json:"level"`
	Mode       string         `json:"mode"`
	Deleted    []int          `json:"deleted"`
	Payload    []byte         `json:"payload"`
	Decoded    string         `json:"decoded"`
	Errors     map[string]int `json:"errors"`
}

const (
	order    = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	wider    = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string","default":""}]}`
	broken   = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"must","type":"string"}]}`
	basket   = `{"type":"record","name":"Basket","fields":[{"name":"first","type":"Order"}]}`
	closed   = `{"type":"object","properties":{"id":{"type":"integer"}},"additionalProperties":false}`
	protobuf = "syntax = \"proto3\";\npackage shop;\nmessage Bill {\n  int64 id = 1;\n}\n"
)

func main() {
	clients := map[string]func(string) (report, error){"franz-go": franz, "confluent": confluent}
	if len(os.Args) != 3 || clients[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go_registry franz-go|confluent URL")
		os.Exit(2)
	}
	found, err := clients[os.Args[1]](os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}
