package import HTTPTypes

/// Remembers the last origin that was read, for a transport whose calls mostly go where the one before went: reading an
/// origin costs more than comparing its text.
package final class OriginMemory: Sendable {
    private let last = Locked<KnownOrigin?>(nil)

    package init() {}

    /// Where a call goes: what it carries, or what is remembered, or what its URL says.
    ///
    /// - Throws: ``WireError`` as ``Origin/init(_:)``.
    package func origin(of call: HTTPCall) throws(WireError) -> Origin {
        if let carried = call.carriedOrigin { return carried }
        return try origin(of: call.request)
    }

    /// Where a request goes.
    ///
    /// - Throws: ``WireError`` as ``Origin/init(_:)``.
    package func origin(of request: HTTPRequest) throws(WireError) -> Origin {
        if let known = last.withLock({ $0 }), known.isOf(request) { return known.origin }
        let origin = try Origin(request)
        last.withLock { $0 = KnownOrigin(origin, of: request) }
        return origin
    }
}
