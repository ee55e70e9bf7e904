module goprofiles

go 1.19
