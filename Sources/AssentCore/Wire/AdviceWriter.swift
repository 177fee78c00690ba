import Foundation

extension Advice {
    /// How an advice is written into a redirect.
    public enum RedirectEncoding: Hashable, Sendable {
        /// Percent-encoded XML, which every client reads.
        case xml
        /// Unpadded base64url of the XML, as newer gateways send it.
        case base64URL
    }

    /// The JSON map as base 64, as the `advices` parameter of a challenge has it.
    ///
    /// The text has none of `+`, `/`, `-` and `_`, because clients differ in which alphabet they read. In ASCII only
    /// `>`, `?`, `~` and DEL can lead to those, so these and everything beyond ASCII become `\u` escapes.
    public var base64Map: String {
        var ascii: [UInt8] = []
        for scalar in json.serialized().unicodeScalars {
            switch scalar {
            case ">", "?", "~", "\u{7F}", "\u{80}"...:
                for unit in String(Character(scalar)).utf16 {
                    ascii += Array("\\u\(Hex.encode([UInt8(unit >> 8), UInt8(unit & 0xFF)]))".utf8)
                }
            default: ascii += Array(String(Character(scalar)).utf8)
            }
        }
        return Data(ascii).base64EncodedString()
    }

    /// The `WWW-Authenticate` field of a gateway's 401 in header mode.
    ///
    /// Vendor clients take it apart at commas without trimming, so there is no space after a comma and no comma in a
    /// value.
    /// - Throws: ``WireError``: `malformed` when `server` is not a URL, or it or `realm` has a comma, quote, backslash
    ///   or characters beyond printable ASCII.
    public func challengeFieldValue(server: String, realm: String) throws(WireError) -> String {
        _ = try Origin(server)
        for text in [server, realm] {
            guard text.utf8.allSatisfy({ $0.isASCIIPrintable && !",\"\\".utf8.contains($0) }) else {
                throw WireError(.malformed, "a value has characters that clients' challenge parsers cannot read")
            }
        }
        let challenge = Challenge(
            scheme: ReceivedAdvice.challengeScheme,
            parameters: [
                .init(name: "realm", value: realm), .init(name: "advices", value: base64Map),
                .init(name: "am_uri", value: server),
            ])
        return try challenge.fieldValue()
    }

    /// The `Location` of a gateway's 307: AM's login page, told what is wanted and where to come back to.
    ///
    /// - Parameters:
    ///   - server: AM's base URL, for example `https://am.example.com/am`.
    ///   - goto: the URL that was asked for. A transaction's id is appended to it as `_txid`, so that a browser that
    ///     comes back brings it along.
    ///   - realm: for example `/alpha`.
    ///   - encoding: how the advice is written.
    /// - Returns: an absolute URL.
    /// - Throws: ``WireError``: `malformed` when `server` or `goto` is not an absolute URL, or `server` has a query or
    ///   fragment.
    public func redirectLocation(
        server: String, goto: String, realm: String, encoding: RedirectEncoding = .xml
    ) throws(WireError) -> String {
        _ = try Origin(server)
        _ = try Origin(goto)
        guard server.utf8.allSatisfy({ $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }) else {
            throw WireError(.malformed, "the server's URL has a query or a fragment")
        }
        let back = transactionID.map { URLText.appending(WireName.transactionParameter, $0, to: goto) } ?? goto
        let value =
            switch encoding {
            case .xml: CompositeAdvice.xml(self)
            case .base64URL: CompositeAdvice.base64URL(self)
            }
        let query = FormEncoding.encode([
            "goto": back, "realm": realm, "authIndexType": "composite_advice", "authIndexValue": value,
        ])
        return "\(server.hasSuffix("/") ? server : server + "/")?\(query)"
    }
}
