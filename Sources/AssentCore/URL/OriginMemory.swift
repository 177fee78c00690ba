package import HTTPTypes

/// Remembers the last origin that was read, for somebody whose calls mostly go where the one before went: reading an
/// origin costs more than comparing its text.
package final class OriginMemory: Sendable {
    private let last = Locked<KnownOrigin?>(nil)
    private let lastBeginning = Locked<KnownBeginning?>(nil)

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

    /// Where an absolute URL goes.
    ///
    /// - Throws: ``WireError`` as ``Origin/init(_:)-(String)``.
    package func origin(of url: String) throws(WireError) -> Origin {
        if let known = lastBeginning.withLock({ $0 }), known.isOf(url) { return known.origin }
        let origin = try Origin(url)
        let known = KnownBeginning(origin, of: url)
        lastBeginning.withLock { $0 = known }
        return origin
    }
}

/// An origin with the beginning of the URL that it was read from, up to the end of its authority.
private final class KnownBeginning: Sendable {
    let origin: Origin
    private let bytes: [UInt8]

    init(_ origin: Origin, of url: String) {
        self.origin = origin
        let rest = url.utf8.dropFirst(origin.scheme.utf8.count + 3)
        bytes = Array(url.utf8[..<(rest.firstIndex(where: Origin.endsAuthority) ?? rest.endIndex)])
    }

    /// Whether a URL begins in the same way and can be read: then its origin is the same.
    func isOf(_ url: String) -> Bool {
        guard url.utf8.count <= Origin.byteLimit else { return false }
        // By the bytes in memory: each call asks, and the text's own view takes several times as long.
        return url.utf8.withContiguousStorageIfAvailable { isBeginning(of: $0) } ?? isBeginning(of: url.utf8)
    }

    private func isBeginning(of url: some Collection<UInt8>) -> Bool {
        guard url.starts(with: bytes) else { return false }
        let rest = url.dropFirst(bytes.count)
        return rest.first.map(Origin.endsAuthority) != false && rest.allSatisfy(Origin.isAllowed)
    }
}
