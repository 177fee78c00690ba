import AssentCore
import AssentPeers
import AssentTokens
import HTTPTypes

/// oidc-provider-mock: a provider that checks little and offers little. See `peers/bad_provider.py`.
final class BadProvider: Sendable {
    /// The one instance of this process; it ends with the process.
    static var shared: BadProvider { get async throws { try await starting.value } }

    private static let starting = Task { try await BadProvider() }

    let issuer: String
    private let process: Locked<ChildProcess>

    private init() async throws {
        let (process, port) = try await Peer.start("bad_provider.sh", [try Peer.python])
        self.process = process
        issuer = "http://127.0.0.1:\(port)"
    }

    func configuration(client: String = "app") throws -> TokenConfiguration {
        var configuration = try TokenConfiguration(
            issuer: issuer, clientID: client, redirectURI: "http://127.0.0.1:9999/cb", scopes: ["openid", "email"])
        // The tests' clock stands still while the provider's goes on.
        configuration.leeway = 300
        return configuration
    }

    /// Plays the user at the page that the provider shows: it wants to know a name and nothing else.
    static func user(_ name: String = "alice@example.org", then change: Tampering.Change? = nil) throws -> Tampering {
        Tampering(try PeerClient.transport()) { call, reply, base in
            var reply = reply
            if call.isTo("/authorize") {
                var answer = call
                answer.request.method = .post
                answer.request.headerFields[.contentType] = FormEncoding.mediaType
                answer.body = HTTPBody(FormEncoding.encode(FormItems(["sub": name])))
                reply = try await base.send(answer)
            }
            return try await change?(call, reply, base) ?? reply
        }
    }
}
