import AssentCore
import AssentEngine
import Foundation
import HTTPTypes
import NIOCore

/// The proxies in front of the server that are believed where a request comes from. Whatever else stands in the field
/// was written by somebody else, and is not read.
struct TrustedProxies: Sendable, Hashable {
    /// The header field in which a proxy notes whose request it passes on.
    enum Field: String, Sendable, Hashable, CaseIterable {
        /// What most proxies write: addresses, the latest one last.
        case forwardedFor = "X-Forwarded-For"
        /// RFC 7239.
        case forwarded = "Forwarded"
    }

    /// Addresses with a common beginning.
    typealias Network = NetworkPrefix

    /// Which proxies they are; none when there are none.
    var networks: [Network] = []

    /// What they write.
    var field = Field.forwardedFor

    /// More proxies than stand in a row anywhere.
    private static let hops = 32

    /// More characters than one entry has.
    private static let entryLength = 512

    /// Whether a connection comes from one of them.
    func contain(_ address: ClientAddress) -> Bool { networks.contains { address.ip.map($0.contains) ?? false } }

    /// Where a request comes from that came by a connection: the last address in the field that is not a trusted
    /// proxy's, if the connection comes from one. A field that does not say it leaves it at the connection's address.
    func client(of connection: ClientAddress, _ fields: HTTPFields) -> ClientAddress {
        guard contain(connection), let name = HTTPField.Name(field.rawValue) else { return connection }
        var rest = fields[values: name].joined(separator: ",")[...]
        var client = connection
        for _ in 0..<Self.hops {
            // By bytes: backwards through signs that join, as letters of flags do, each character takes as long as all
            // before it.
            let comma = rest.utf8.lastIndex(of: UInt8(ascii: ","))
            let entry = comma.map { rest[rest.utf8.index(after: $0)...] } ?? rest
            guard entry.utf8.count <= Self.entryLength, let address = address(in: entry) else { return connection }
            client = address
            guard contain(address), let comma else { return client }
            rest = rest[..<comma]
        }
        return connection
    }

    /// The address in one entry of the field.
    private func address(in entry: Substring) -> ClientAddress? {
        let entry = entry.trimmingCharacters(in: .whitespaces)
        switch field {
        case .forwardedFor: return Self.address(entry)
        case .forwarded: return Self.node(entry).flatMap(Self.address)
        }
    }

    /// The one `for` of an element of `Forwarded` (RFC 7239 §4).
    private static func node(_ element: String) -> String? {
        let pairs = element.split(separator: ";").map {
            $0.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
        }
        let nodes = pairs.filter { $0.first?.lowercased() == "for" }
        guard nodes.count == 1, nodes[0].count == 2 else { return nil }
        let value = nodes[0][1]
        guard value.hasPrefix("\"") else { return value }
        return value.utf8.count >= 2 && value.hasSuffix("\"") ? String(value.dropFirst().dropLast()) : nil
    }

    /// An address, perhaps with a port: `192.0.2.7`, `192.0.2.7:1234`, `2001:db8::7`, `[2001:db8::7]`,
    /// `[2001:db8::7]:1234`.
    private static func address(_ text: String) -> ClientAddress? {
        var host = text[...]
        var port: Substring?
        if host.hasPrefix("[") {
            guard let end = host.firstIndex(of: "]") else { return nil }
            let tail = host[host.index(after: end)...]
            guard tail.isEmpty || tail.hasPrefix(":") else { return nil }
            port = tail.isEmpty ? nil : tail.dropFirst()
            host = host[host.index(after: host.startIndex)..<end]
            guard host.contains(":") else { return nil }
        } else if let colon = host.firstIndex(of: ":"), colon == host.lastIndex(of: ":") {
            port = host[host.index(after: colon)...]
            host = host[..<colon]
        }
        if let port, number(port, digits: 1...5) == nil { return nil }
        return (try? SocketAddress(ipAddress: String(host), port: 0)).map { ClientAddress($0) }
    }

    private static func number(_ text: Substring, digits: ClosedRange<Int>) -> Int? {
        digits.contains(text.utf8.count) && text.utf8.allSatisfy(\.isASCIIDigit) ? Int(text) : nil
    }
}
