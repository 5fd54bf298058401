module core_client

go 1.19
