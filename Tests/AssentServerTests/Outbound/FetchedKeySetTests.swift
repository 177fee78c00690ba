import AssentCore
import AssentJOSE
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A client that publishes its keys, and what it can do wrong there. The address is a public route of another server's
/// gateway, so that the reply may be anything.
@Suite(
    "Key sets of clients, as the server fetches them",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct FetchedKeySetTests {
    /// What the client publishes, and what its right assertion is answered with.
    struct Published: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let status: Int
        var redirects = false
        let text: @Sendable (_ own: JSONObject, _ other: JSONValue) -> String

        init(
            _ name: String, _ status: Int, redirects: Bool = false,
            _ text: @escaping @Sendable (_ own: JSONObject, _ other: JSONValue) -> String
        ) {
            testDescription = name
            self.status = status
            self.redirects = redirects
            self.text = text
        }

        /// A set with so many keys, the client's own last.
        static func keys(_ count: Int, _ status: Int) -> Published {
            Published("\(count) keys", status) { own, other in
                set(Array(repeating: other, count: count - 1) + [.object(own)])
            }
        }

        /// A set with the client's own key alone, after a change.
        static func key(
            _ name: String, _ status: Int, _ change: @escaping @Sendable (inout JSONObject) -> Void
        ) -> Published {
            Published(name, status) { own, _ in
                var key = own
                change(&key)
                return set([.object(key)])
            }
        }

        private static func set(_ keys: [JSONValue]) -> String {
            JSONValue.object(["keys": .array(keys)]).serialized()
        }
    }

    static let cases: [Published] = [
        .keys(1, 200), .keys(ClientKeys.limit, 200), .keys(ClientKeys.limit + 1, 503), .keys(10_000, 503),
        Published("a redirect to the right set", 503, redirects: true) { own, _ in
            JSONValue.object(["keys": [.object(own)]]).serialized()
        },
        .key("a key of 64 KiB", 503) { $0["x5c"] = [.string(String(repeating: "A", count: 64 << 10))] },
        Published("the list twice", 503) { own, _ in
            let list = JSONValue.array([.object(own)]).serialized()
            return #"{"keys":\#(list),"keys":\#(list)}"#
        },
        .key("a member of the key twice", 503) { $0 = JSONObject($0.members + [.init(name: "kty", value: "EC")]) },
        .key("a point off the curve", 400) { $0["y"] = $0["x"] },
        .key("a private key", 400) { $0["d"] = .string(Base64URL.encode([UInt8](repeating: 1, count: 32))) },
        .key("a symmetric key", 400) { $0 = ["kty": "oct", "k": "AAAA"] },
        .key("a key for encryption", 400) { $0["use"] = "enc" },
        Published("no JSON", 503) { _, _ in "<html></html>" },
    ]

    @Test("The right assertion is accepted where the set can be used, and nothing else is followed", arguments: cases)
    func fetched(_ published: Published) async throws {
        let (key, other) = (try ProofKey(), try ProofKey())
        let own = try #require(key.jwk.json.object)
        let text = published.text(own, other.jwk.json)
        try await ServerFixture.run { place in
            let authorities = try #require(place.endpoints.authorityFile)
            let address = place.gateway("/open/keys")
            place.upstream.answer { [target = place.gateway("/open/moved")] request, peer in
                if published.redirects, !request.line.contains("/open/moved") {
                    peer.answer("302 Found", fields: ["Location: \(target)"])
                } else {
                    peer.answer(fields: ["Content-Type: application/json"], text)
                }
            }
            let fixture = try await ServerFixture(editing: { Self.file(address, authorities: authorities, $0) })
            let form =
                try await [("grant_type", "client_credentials")] + ClientAssertionRouteTests.assertion(fixture, key)
            let answer = try await fixture.send(
                "POST", fixture.oauth("access_token"), [("Content-Type", "application/x-www-form-urlencoded")],
                text: ServerFixture.query(form))
            #expect(answer.status == published.status, "\(answer.text)")
            let errors = [400: "invalid_client", 503: "temporarily_unavailable"]
            #expect(answer.error == errors[published.status], "\(answer.text)")
            #expect(place.upstream.requests.count == 1)
            #expect(try await fixture.count("client_assertions") == (published.status == 200 ? 1 : 0))
            await fixture.stop()
        }
    }

    /// The file of a server with a client that publishes its keys at an address of this machine.
    private static func file(_ address: String, authorities: String, _ text: String) -> String {
        "outbound: {privateHosts: [localhost], authorities: \(authorities)}\n"
            + text.replacing(
                "      reader:\n",
                with: """
                          keyed:
                            jwksURI: \(address)
                            scopes: [accounts]
                            defaultScopes: [accounts]
                            grantTypes: [client_credentials]
                          reader:

                    """, maxReplacements: 1)
    }
}
