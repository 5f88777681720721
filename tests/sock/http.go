// SPDX-License-Identifier: BSD-2-Clause

// A server and a client by HTTP in Go, which makes its system calls by itself. all_test.py runs it:
//
//	http server ADDRESS    prints "at HOST PORT"; answers with the body of the request
//	http client ADDRESS    400 requests over 8 connections; compares the answers
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
)

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func serve(address string) {
	l, err := net.Listen("tcp", address)
	check(err)
	host, port, err := net.SplitHostPort(l.Addr().String())
	check(err)
	fmt.Println("at", host, port)
	check(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		check(err)
		w.Header().Set("From", r.RemoteAddr)
		w.Write(body)
	})))
}

// ask makes 50 requests over one connection, and returns the address from which the server saw them.
func ask(address string, number byte) string {
	client := &http.Client{Transport: &http.Transport{}}
	from := ""
	for i := 0; i < 50; i++ {
		data := bytes.Repeat([]byte{number, byte(i), 7}, 1000*(i+1))
		answer, err := client.Post("http://"+address+"/", "application/octet-stream", bytes.NewReader(data))
		check(err)
		body, err := io.ReadAll(answer.Body)
		check(err)
		answer.Body.Close()
		if !bytes.Equal(body, data) {
			check(fmt.Errorf("answer %d of connection %d is wrong", i, number))
		}
		from = answer.Header.Get("From")
	}
	return from
}

func main() {
	if os.Args[1] == "server" {
		serve(os.Args[2])
	}
	var all sync.WaitGroup
	for number := byte(0); number < 8; number++ {
		all.Add(1)
		go func(number byte) {
			defer all.Done()
			ask(os.Args[2], number)
		}(number)
	}
	all.Wait()
	fmt.Println("400 right")
	one, err := net.Dial("tcp", os.Args[2])
	check(err)
	fmt.Println("peer", one.RemoteAddr())
	host, _, err := net.SplitHostPort(ask(os.Args[2], 9))
	check(err)
	fmt.Println("from", host)
}
