// SPDX-License-Identifier: MIT
//
// Renders a Helm chart as Helm does: Go's text/template with the functions of sprig, and those that
// Helm adds. Input: one JSON object {"files": {name: text}, "data": {"Values": ..., ...}}. Output: one
// JSON object of the rendered templates.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v2"
)

type input struct {
	Files map[string]string      `json:"files"`
	Data  map[string]interface{} `json:"data"`
}

func render(in input) (map[string]string, error) {
	root := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := root.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["required"] = func(message string, value interface{}) (interface{}, error) {
		if list, is_list := value.([]interface{}); value == nil || value == "" || (is_list && len(list) == 0) {
			return nil, errors.New(message)
		}
		return value, nil
	}
	functions["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	root.Funcs(functions)
	for name, text := range in.Files {
		if _, err := root.New(name).Parse(text); err != nil {
			return nil, err
		}
	}
	rendered := map[string]string{}
	for name := range in.Files {
		var text bytes.Buffer
		if err := root.ExecuteTemplate(&text, name, in.Data); err != nil {
			return nil, err
		}
		rendered[name] = text.String()
	}
	return rendered, nil
}

func main() {
	var in input
	err := json.NewDecoder(os.Stdin).Decode(&in)
	var rendered map[string]string
	if err == nil {
		rendered, err = render(in)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(rendered)
}
