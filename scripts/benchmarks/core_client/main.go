// Command core_client executes plugins the way core does and tells how long each took.
//
// It reads one JSON object a line: what to execute, where, with which environment and request. It answers each with one
// line, an array: seconds from before the start to the end of both pipes and of the process, processor seconds, exit
// status, the bytes of stdout and then stderr.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

type call struct {
	Arguments   []string `json:"arguments"`
	Folder      string   `json:"folder"`
	Environment []string `json:"environment"`
	Stdin       string   `json:"stdin"`
}

func execute(wanted call) ([]any, error) {
	request, err := os.ReadFile(wanted.Stdin)
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	started := time.Now()
	command := exec.Command(wanted.Arguments[0], wanted.Arguments[1:]...)
	command.Dir = wanted.Folder
	command.Env = wanted.Environment
	command.Stdin = bytes.NewReader(request)
	command.Stdout = &stdout
	command.Stderr = &stderr
	err = command.Run()
	elapsed := time.Since(started)
	state := command.ProcessState
	if state == nil {
		return nil, err
	}
	processor := state.UserTime() + state.SystemTime()
	output := append(stdout.Bytes(), stderr.Bytes()...)
	return []any{elapsed.Seconds(), processor.Seconds(), state.ExitCode(), output}, nil
}

func main() {
	requests := json.NewDecoder(bufio.NewReader(os.Stdin))
	answers := json.NewEncoder(os.Stdout)
	for requests.More() {
		var wanted call
		err := requests.Decode(&wanted)
		var done []any
		if err == nil {
			done, err = execute(wanted)
		}
		if err == nil {
			err = answers.Encode(done)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "core_client:", err)
			os.Exit(1)
		}
	}
}
