import AssentCore
import AssentPeers
import AssentTesting
import Foundation
import Testing

/// A client that others wrote, whose tokens belong to its key (RFC 9449), at our server with TLS. Authlib makes no
/// proofs: joserfc signs them. What the script asserts itself is in it.
@Suite(
    "Python clients with proofs against our server",
    .enabled(if: Peer.hasPython, "The packages of requirements.txt are missing: run Scripts/setup.sh --tests"))
struct DPoPClientTests {
    private static let clients = [("app", "none"), ("strict", "none"), ("web", "basic")]

    /// What a refusal at the userinfo endpoint looks like.
    private static func refused(_ error: String) -> JSONValue { [401, .string(error)] }

    @Test(
        "Authlib signs in, calls and refreshes by its key; its tokens are refused without the key", arguments: clients)
    func authlib(client: String, authentication: String) async throws {
        // Its time stands still: for minutes after its start, it asks all clients for nonces.
        let server = try await OurServer(clock: ManualClock(Date()))
        defer { server.stop() }
        let seen = try await Peer.run("dpop_flow.py", server.job(client: client, authentication: authentication))
        #expect(seen["algorithms"] == ["ES256", "ES384", "PS256", "EdDSA"])
        // `strict` is a client with dpopBound: it is refused before anybody looks at the code.
        let without: JSONValue = client == "strict" ? "invalid_dpop_proof" : "invalid_grant"
        #expect(seen["code"] == ["none": without, "other": "invalid_grant"])
        #expect(seen["token_type"] == "DPoP" && seen["bound"] == true && seen["userinfo"] == true)
        // The first proof had no nonce, and the script has answered with one: at once, and once only.
        #expect(seen["asked"] == 1)

        let accepted: JSONValue = [200, .null]
        #expect(
            seen["stolen"] == [
                "bearer": Self.refused("invalid_token"), "bearer_and_proof": Self.refused("invalid_token"),
                "none": Self.refused("invalid_dpop_proof"), "other": Self.refused("invalid_token"), "owner": accepted,
                "owner_any_case": accepted, "other_token": Self.refused("invalid_dpop_proof"),
            ])
        #expect(seen["replay"] == [200, 401])

        // RFC 9449 §5: a public client's refresh token belongs to the key, a confidential client's to the client.
        if authentication == "none" {
            #expect(seen["refresh"] == ["none": without, "other": "invalid_grant"])
        } else {
            #expect(seen["refresh"] == ["other": ["owner": accepted, "first": Self.refused("invalid_token")]])
        }
        #expect(seen["refreshed"] == "DPoP" && seen["rotated"] == true && seen["userinfo_refreshed"] == true)
        #expect(seen["introspection"] == ["active": true, "token_type": "DPoP", "bound": true])
    }
}
