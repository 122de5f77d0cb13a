// Prints the columns and rows of a Parquet file as JSON, one line for each: what parquet-go reads.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

func main() {
	if err := printRows(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func printRows(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	parsed, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return err
	}
	names := []string{}
	for _, column := range parsed.Schema().Columns() {
		names = append(names, column[0])
	}
	output := json.NewEncoder(os.Stdout)
	if err := output.Encode(names); err != nil {
		return err
	}
	for _, group := range parsed.RowGroups() {
		if err := printGroup(group, len(names), output); err != nil {
			return err
		}
	}
	return nil
}

func printGroup(group parquet.RowGroup, columns int, output *json.Encoder) error {
	rows := group.Rows()
	defer rows.Close()
	buffer := make([]parquet.Row, 1024)
	for {
		count, err := rows.ReadRows(buffer)
		for _, row := range buffer[:count] {
			values := make([]*string, columns)
			for _, value := range row {
				if !value.IsNull() {
					text := string(value.ByteArray())
					values[value.Column()] = &text
				}
			}
			if err := output.Encode(values); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
