import AssentCore
import AssentJOSE
import AssentPeers
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

/// mod_oauth2, set up by docs/connect-a-program.md, in front of an API for tokens that belong to a key: the tokens are
/// our server's, the proofs are the SDK's.
@Suite(
    "mod_oauth2 with DPoP",
    .enabled(
        if: Peer.has("/usr/sbin/apache2", "/usr/lib/apache2/modules/mod_oauth2.so"),
        "apache2 or its mod_oauth2 is missing: run Scripts/setup.sh --tests"))
struct DPoPResourceTests {
    /// The API, and a client of it that has a token and its key.
    private struct API {
        let url: String
        let manager: TokenManager
        let client: PeerClient

        /// The status of a call with these fields.
        func status(_ scheme: String, _ token: Secret, _ proof: String?) async throws -> Int {
            var fields: HTTPFields = [.authorization: "\(scheme) \(token.reveal())"]
            fields[.dpop] = proof
            return try await client.send(.get, url, fields).status
        }

        /// A proof for a call by the token's owner.
        func proof(_ method: HTTPRequest.Method = .get, url other: String? = nil) async throws -> String {
            try #require(try await manager.credential(for: method, url: other ?? url).proof).reveal()
        }
    }

    private func run(_ body: (OurServer, API) async throws -> Void) async throws {
        // The module compares the time of a proof with its own, to the second.
        try await ProgramTests.run(clock: SystemClock()) { server, page in
            let directory = try Peer.temporaryDirectory()
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let section = "An API behind Apache that takes DPoP tokens alone"
            let block = try #require(page.blocks("apache", of: section).first)
                // The module trusts the system's authorities only, and cannot be told of one that a test has made.
                .replacing("verify.iss=skip", with: "jwks_uri.ssl_verify=false&verify.iss=skip")
            let (process, port) = try await ProgramTests.apache("oauth2", block, server, directory: directory)
            defer { process.withLock { $0.stop() } }
            let keys = SoftwareKeyProvider(unprotectedFile: URL(fileURLWithPath: directory + "/keys"))
            let manager = try await Self.manager(server, .on(keys: keys))
            try await body(
                server,
                API(url: "http://127.0.0.1:\(port)/api/", manager: manager, client: try PeerClient()))
        }
    }

    /// The SDK as the API's client.
    private static func manager(_ server: OurServer, _ dpop: DPoPConfiguration) async throws -> TokenManager {
        var configuration = try server.configuration(
            client: "mobile", redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "accounts"])
        configuration.dpop = dpop
        return try await server.manager(configuration, clock: SystemClock())
    }

    @Test("It takes our bound token with a proof by the SDK, whoever writes the scheme how, and each proof once")
    func accepted() async throws {
        try await run { _, api in
            let tokens = try await api.manager.tokens()
            #expect(tokens.isBound)
            let proof = try await api.proof()
            #expect(try await api.status("DPoP", tokens.accessToken, proof) == 200)
            #expect(try await api.status("DPoP", tokens.accessToken, proof) == 401)
            #expect(try await api.status("dpop", tokens.accessToken, try await api.proof()) == 200)
            // The transport that makes the proofs itself.
            let call = HTTPCall(try HTTPRequest(.get, url: api.url))
            let transport = AuthenticatingTransport(
                api.manager, resources: [try Origin(api.url): .accessToken], over: api.client.transport)
            #expect(try await transport.send(call).status == 200)
        }
    }

    @Test(
        "It refuses a stolen token, as Bearer, without a proof, with another key's or another call's, and an unbound one"
    )
    func refused() async throws {
        try await run { server, api in
            let token = try await api.manager.tokens().accessToken
            let theirs = try SoftwareSigningKey.generate(.es256)
            func foreign(_ token: Secret) async throws -> String {
                try await DPoPProof.make(
                    method: "GET", uri: api.url, accessToken: token, key: theirs, clock: SystemClock())
            }
            #expect(try await api.status("Bearer", token, nil) == 401)
            #expect(try await api.status("Bearer", token, try await api.proof()) == 401)
            #expect(try await api.status("DPoP", token, nil) == 401)
            #expect(try await api.status("DPoP", token, try await foreign(token)) == 401)
            #expect(try await api.status("DPoP", token, try await api.proof(url: api.url + "other")) == 401)
            #expect(try await api.status("DPoP", token, try await api.proof(.post)) == 401)
            let unbound = try await Self.manager(server, .off).tokens().accessToken
            #expect(try await api.status("Bearer", unbound, nil) == 401)
            #expect(try await api.status("DPoP", unbound, try await foreign(unbound)) == 401)
            // It was the proofs, not the token, that it refused.
            #expect(try await api.status("DPoP", token, try await api.proof()) == 200)
        }
    }
}
