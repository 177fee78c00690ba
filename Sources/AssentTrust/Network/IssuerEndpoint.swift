package import AssentCore
import HTTPTypes

/// An address that only the metadata of an OAuth issuer says (RFC 8414), for calls that carry no credential.
package struct IssuerEndpoint: Sendable {
    private static let replyBytes = 256 << 10

    private let issuer: String
    private let name: String

    /// - Parameters:
    ///   - name: the member of the metadata.
    ///   - issuer: the issuer.
    package init(_ name: String, of issuer: String) { (self.name, self.issuer) = (name, issuer) }

    /// Asks for it.
    ///
    /// - Parameters:
    ///   - transport: the pinned way to the issuer.
    ///   - limits: how long the question may take.
    /// - Returns: the address, which is on the issuer's own server; `nil` when the metadata was read and has none.
    /// - Throws: `HTTPTransportError` when it cannot be read, or is not that of the issuer.
    package func find(over transport: any HTTPTransport, limits: HTTPLimits) async throws -> String? {
        var limits = limits
        limits.replyBytes = Self.replyBytes
        let url = issuer + "/.well-known/openid-configuration"
        let reply = try await transport.send(HTTPCall(.get, url: url, limits: limits))
        let bytes = try await reply.body.collect(upTo: Self.replyBytes)
        let bounds = JSONLimits(bytes: Self.replyBytes, depth: 16, values: 4000)
        guard reply.status == 200, let json = try? JSONValue.parse(bytes, limits: bounds),
            json["issuer"]?.string == issuer
        else { throw HTTPTransportError(.malformedReply, "The metadata of the issuer cannot be used.") }
        guard let endpoint = json[name]?.string, endpoint.utf8.count <= 2048, let origin = try? Origin(endpoint),
            origin == (try? Origin(issuer))
        else { return nil }
        return endpoint
    }
}
