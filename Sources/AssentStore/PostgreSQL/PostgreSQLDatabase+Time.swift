#if PostgreSQL && os(Linux)
extension PostgreSQLDatabase {
    /// The server's time.
    package func time() async throws -> Int64? {
        try await run(.read("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS milliseconds")).first?
            .integer("milliseconds")
    }
}
#endif
