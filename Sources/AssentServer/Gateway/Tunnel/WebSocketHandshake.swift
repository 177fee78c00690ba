import AssentCore
import Crypto
import Foundation
import HTTPTypes

/// A client's opening handshake of a WebSocket (RFC 6455 §4.2.1), and what of the service's answer goes back.
struct WebSocketHandshake: Sendable, Hashable {
    /// What the client has sent as `Sec-WebSocket-Key`.
    let key: String

    /// The version of the protocol.
    static let version = "13"

    private static let keyBytes = 16
    /// RFC 6455 §1.3.
    private static let unique = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// Reads the handshake of a request that has the field `Upgrade`.
    ///
    /// - Throws: `RequestError` for anything that is not exactly one.
    init(_ method: HTTPRequest.Method, _ fields: HTTPFields) throws {
        guard method == .get, Self.asksForWebSocket(fields) else {
            throw RequestError(400, "Nothing but a WebSocket can be opened here: GET with one Upgrade: websocket.")
        }
        guard fields[.transferEncoding] == nil, fields[values: .contentLength].allSatisfy({ $0 == "0" }) else {
            throw RequestError(400, "A WebSocket is opened without a body.")
        }
        guard fields[values: .secWebSocketVersion] == [Self.version] else {
            throw RequestError(426, "The gateway knows version 13 of WebSockets.")
        }
        let keys = fields[values: .secWebSocketKey]
        guard keys.count == 1, let key = keys.first, Data(base64Encoded: key)?.count == Self.keyBytes else {
            throw RequestError(400, "Sec-WebSocket-Key must be 16 bytes in Base64, once.")
        }
        self.key = key
    }

    /// Whether fields name one protocol to switch to, and say that it is for this hop.
    private static func asksForWebSocket(_ fields: HTTPFields) -> Bool {
        let upgrades = fields[values: .upgrade]
        guard upgrades.count == 1, upgrades[0].lowercased() == "websocket" else { return false }
        return fields[values: .connection].flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }
            .contains { $0.trimmingBlanks.lowercased() == "upgrade" }
    }

    /// What the service must answer (RFC 6455 §4.2.2).
    var accept: String {
        Data(Insecure.SHA1.hash(data: Array((key + Self.unique).utf8))).base64EncodedString()
    }

    /// The head of the service's request: the fields that it gets, and the handshake of this hop.
    func request(target: String, authority: String, fields: HTTPFields) -> String {
        var lines = ["GET \(target) HTTP/1.1", "Host: \(authority)", "Connection: Upgrade", "Upgrade: websocket"]
        lines += fields.map { "\($0.name.rawName): \($0.value)" }
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// The head of the client's 101, from the service's. Nothing goes on but what belongs to the handshake.
    ///
    /// - Returns: `nil` when the service has not accepted this very handshake.
    func reply(to head: ServiceHead) -> String? {
        guard head.status == 101, Self.asksForWebSocket(head.fields),
            head.fields[values: .secWebSocketAccept] == [accept]
        else { return nil }
        var lines = [
            "HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket",
            "Sec-WebSocket-Accept: \(accept)",
        ]
        for name in [HTTPField.Name.secWebSocketProtocol, .secWebSocketExtensions] {
            lines += head.fields[values: name].map { "\(name.rawName): \($0)" }
        }
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }
}

/// The head of the answer to a handshake.
struct ServiceHead: Sendable, Hashable {
    /// The longest head, in bytes.
    static let longest = 16 << 10

    /// The HTTP status.
    let status: Int

    /// The fields.
    let fields: HTTPFields

    /// Reads a head without the blank line at its end; `nil` for anything that is not one of HTTP/1.1.
    init?(_ bytes: some Collection<UInt8>) {
        guard let text = String(validating: bytes, as: UTF8.self), !MarksInARow.areTooMany(in: text) else { return nil }
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
        guard let first = lines.first, first.hasPrefix("HTTP/1.1 ") else { return nil }
        let code = first.dropFirst(9).prefix(3)
        guard code.utf8.count == 3, code.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let status = Int(code),
            status >= 100
        else { return nil }
        var fields = HTTPFields()
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), let name = HTTPField.Name(String(line[..<colon])) else {
                return nil
            }
            let value = line[line.index(after: colon)...].utf8.trimmingBlanks
            guard HTTPField.isValidValue(value) else { return nil }
            fields.append(HTTPField(name: name, value: value))
        }
        self.status = status
        self.fields = fields
    }
}

extension Substring.UTF8View {
    /// The text without the blanks and tabs at its ends (RFC 9110 §5.6.3).
    ///
    /// By bytes: backwards through signs that join, as letters of flags do, each character takes as long as all before
    /// it, and a field has room for thousands.
    fileprivate var trimmingBlanks: String {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let rest = drop(while: isBlank)
        guard let last = rest.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(Substring(rest[...last]))
    }
}
