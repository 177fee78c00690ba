import AssentCore
import AssentJOSE
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("A service behind a gateway elsewhere is told who calls in a token that the engine signs")
struct RemoteIdentityTests {
    private static let audience = "https://accounts.internal"
    private static let field = "Assent-Identity"

    /// Runs `body` beside a gateway whose first route says who calls.
    private func run(_ body: (GatewayAlone) async throws -> Void) async throws {
        let key = #"identity: {audience: "https://accounts.internal", claims: [preferred_username]}"#
        let editing = { (text: String) in
            text.replacing(
                "      maxBodyBytes: 4096\n", with: "      maxBodyBytes: 4096\n      \(key)\n", maxReplacements: 1)
        }
        try await GatewayAlone.run(editing: editing, body)
    }

    /// The claims of the token that came with the service's latest request, and no second one, by the engine's keys.
    private func claims(_ alone: GatewayAlone) async throws -> JWTClaims {
        let values = try #require(alone.upstream.requests.last).values(Self.field)
        #expect(values.count == 1)
        let message = try UnverifiedJWS.parse(try #require(values.first))
        #expect(message.type == "assent-identity+jwt")
        let keys = try await alone.engine.send("GET", alone.engine.oauth("connect/identity_keys")).json
        return try JWTClaims(payload: message.verified(with: try JWKSet(keys), algorithms: [.es256]).payload)
    }

    @Test("It says who calls, from this gateway and for this service, and a client's own field is not passed on")
    func plain() async throws {
        try await run { alone in
            let session = ServerFixture.session(try await alone.engine.session())
            let forged = [Self.field, Self.field.lowercased(), "Assent_Identity"].map { ($0, "forged") }
            #expect(try await alone.get("/accounts", session + forged).status == 200)
            let read = try await claims(alone)
            let ana = try #require(await Users(alone.engine.server.context).find(username: "ana", realm: "/alpha"))
            #expect(read.iss == GatewayAlone.origin && read.aud == [Self.audience] && read.sub == ana.id)
            #expect(read["preferred_username"] == "ana")
            #expect(read["txn"] == nil)
            let seen = try #require(alone.upstream.requests.last)
            #expect(!seen.head.contains("forged"))
            #expect(try await alone.get("/open", forged).status == 200)
            let open = try #require(alone.upstream.requests.last)
            #expect(open.values(Self.field) == [] && !open.head.contains("forged"))
        }
    }

    @Test("With a transaction it says what was approved: id, method, URL and the digest of the very body")
    func transaction() async throws {
        try await run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved("/nods?b=2", session: session)
            let paid = try await alone.post("/nods?b=2", ServerFixture.session(session), transaction: id)
            #expect(paid.status == 201)
            let sent = try #require(alone.upstream.requests.last)
            let read = try await claims(alone)
            let txn = try #require(read["txn"])
            #expect(txn["id"] == .string(id) && txn["method"] == "POST")
            #expect(txn["url"] == .string(GatewayAlone.origin + "/nods?b=2"))
            #expect(txn["body_sha256"] == .string(Base64URL.encode(SHA2.sha256(sent.body))))
        }
    }
}
