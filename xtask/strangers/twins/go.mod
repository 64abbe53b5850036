module strangers.test/twins

go 1.19

require github.com/cespare/xxhash/v2 v2.3.0
