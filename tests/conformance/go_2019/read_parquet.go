// Prints the column names of a Parquet file, then each row as a JSON array, as a library of December 2019 reads it.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"github.com/xitongsys/parquet-go-source/local"
	"github.com/xitongsys/parquet-go/reader"
)

func main() {
	file, err := local.NewLocalFileReader(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	found, err := reader.NewParquetColumnReader(file, 1)
	if err != nil {
		log.Fatal(err)
	}
	names, columns := []string{}, [][]interface{}{}
	for number, path := range found.SchemaHandler.ValueColumns {
		values, _, _, err := found.ReadColumnByIndex(int64(number), found.GetNumRows())
		if err != nil {
			log.Fatal(err)
		}
		columns = append(columns, values)
		names = append(names, found.SchemaHandler.GetExName(int(found.SchemaHandler.MapIndex[path])))
	}
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	lines := json.NewEncoder(output)
	lines.Encode(names)
	row := make([]interface{}, len(columns))
	for number := 0; number < int(found.GetNumRows()); number++ {
		for column := range columns {
			row[column] = columns[column][number]
		}
		lines.Encode(row)
	}
}
