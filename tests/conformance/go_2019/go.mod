module conformance2019

go 1.24

require (
	github.com/xitongsys/parquet-go v1.5.0
	github.com/xitongsys/parquet-go-source v0.0.0-20190524061010-2b72cbee77d5
)

require (
	github.com/apache/thrift v0.0.0-20181112125854-24918abba929 // indirect
	github.com/golang/snappy v0.0.0-20180518054509-2e65f85255db // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/klauspost/compress v1.9.4 // indirect
)
