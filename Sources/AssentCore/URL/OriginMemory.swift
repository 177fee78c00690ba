package import HTTPTypes

/// Remembers the last origin that was read: calls mostly go where the one before went, and reading an origin costs more
/// than comparing its text.
package final class OriginMemory: Sendable {
    private struct Known {
        let scheme: String
        let authority: String
        let origin: Origin
    }

    private let last = Locked<Known?>(nil)

    package init() {}

    /// Where a request goes.
    ///
    /// - Throws: ``WireError`` as ``Origin/init(_:)``.
    package func origin(of request: HTTPRequest) throws(WireError) -> Origin {
        let known = last.withLock { $0 }
        if let known, known.scheme == request.scheme, known.authority == request.authority { return known.origin }
        let origin = try Origin(request)
        if let scheme = request.scheme, let authority = request.authority {
            last.withLock { $0 = Known(scheme: scheme, authority: authority, origin: origin) }
        }
        return origin
    }
}
