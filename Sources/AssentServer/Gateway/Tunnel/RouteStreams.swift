import AssentCore

/// What a route allows of replies that do not end by themselves: event streams, and others without a length.
package struct RouteStreams: Sendable, Hashable {
    /// How many may be open at once, on this node.
    package var limit = 1000

    /// After how many seconds the caller is looked up again, also of a WebSocket.
    package var recheckSeconds = 30

    /// What a route says.
    ///
    /// - Throws: what is wrong, with its place.
    static func read(_ route: SettingsReader<Void>, access: GatewayRoute.Access) throws -> RouteStreams {
        if access == .everybody, route.has("recheckSeconds") {
            throw route.issue("recheckSeconds", "a public route has no recheckSeconds: nobody is asked who they are")
        }
        var read = RouteStreams()
        read.limit = route.integer("maxStreams", default: read.limit, in: 1...1_000_000)
        read.recheckSeconds = route.integer("recheckSeconds", default: read.recheckSeconds, in: 1...3600)
        return read
    }
}
