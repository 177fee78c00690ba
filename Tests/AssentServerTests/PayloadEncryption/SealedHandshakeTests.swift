import AssentCore
import AssentJOSE
import AssentPayload
import AssentStore
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Payload encryption: handshakes at a listener")
struct SealedHandshakeTests {
    @Test("A handshake that is not as the page says is refused, and stores no session")
    func malformed() async throws {
        try await ServerFixture.run { fixture in
            let key = try await SealedClient.key(fixture)
            let body = try SealedClient.handshake(fixture, key).request.body
            let object = try #require(JSONValue.parse(body).object)
            func answer(_ change: (inout JSONObject) -> Void) async throws -> PayloadRefusal? {
                var object = object
                change(&object)
                return try await SealedClient.send(fixture, JSONValue.object(object).serializedBytes()).refusal
            }
            for name in object.members.map(\.name) {
                #expect(try await answer { $0[name] = nil } == .malformed, "\(name)")
            }
            for count in [31, 33] {
                let bytes = [UInt8](repeating: 9, count: count)
                #expect(try await answer { $0["e"] = .string(Base64URL.encode(bytes)) } == .malformed)
            }
            let zero = Base64URL.encode([UInt8](repeating: 0, count: 32))
            #expect(try await answer { $0["e"] = .string(zero) } == .malformed)
            #expect(try await answer { $0["more"] = 1 } == .malformed)
            #expect(try await answer { $0["kid"] = .string(zero) } == .unknownKey)
            #expect(try await answer { _ in } == nil)
        }
    }

    @Test("A key whose time is over takes no handshake")
    func expired() async throws {
        try await ServerFixture.run { fixture in
            let key = try await SealedClient.key(fixture, days: 1)
            let body = try SealedClient.handshake(fixture, key).request.body
            #expect(try await SealedClient.send(fixture, body).status == 200)
            fixture.clock.advance(by: 86_400)
            #expect(try await SealedClient.send(fixture, body).refusal == .unknownKey)
        }
    }

    @Test("One address gets twenty handshakes at once, and more with time")
    func busy() async throws {
        try await ServerFixture.run { fixture in
            let key = try await SealedClient.key(fixture)
            let body = try SealedClient.handshake(fixture, key).request.body
            for _ in 0..<20 { #expect(try await SealedClient.send(fixture, body).status == 200) }
            let refused = try await SealedClient.send(fixture, body)
            #expect(refused.refusal == .busy)
            #expect(refused["retry-after"] != nil)
            fixture.clock.advance(by: 1)
            for _ in 0..<2 { #expect(try await SealedClient.send(fixture, body).status == 200) }
            #expect(try await SealedClient.send(fixture, body).refusal == .busy)
        }
    }

    @Test("A device is one by a proof of its key, its URL and this body, once, while its instance is there")
    func device() async throws {
        try await RegistrationDoor.run { door in
            let fixture = door.fixture
            let key = try await SealedClient.key(fixture)
            let instance = try await door.instance()
            let handshake = try SealedClient.handshake(fixture, key, client: instance.id, toGateway: false)
            let body = handshake.request.body
            let url = fixture.root("/assent-pe/1/handshake")
            func proof(
                by key: ProofKey? = nil, to url: String = url, of claim: String = handshake.request.claim
            ) async throws -> String {
                try await door.proof("POST", url, by: key ?? instance.key, claims: { $0["pe"] = .string(claim) })
            }
            func send(_ proofs: [String]) async throws -> Answer {
                try await SealedClient.send(fixture, body, toGateway: false, fields: proofs.map { ("DPoP", $0) })
            }
            #expect(try await send([]).refusal == .badProof)
            #expect(try await send([try await proof(by: try ProofKey())]).refusal == .badProof)
            #expect(try await send([try await proof(to: fixture.root("/other"))]).refusal == .badProof)
            #expect(try await send([try await proof(of: "other")]).refusal == .badProof)
            #expect(try await send([try await proof(), try await proof()]).refusal == .badProof)
            let good = try await proof()
            let answer = try await send([good])
            #expect(answer.status == 200, "\(answer.text)")
            _ = try handshake.finish(answer.bytes)
            #expect(try await send([good]).refusal == .badProof)
            #expect(try await door.act("endRegistration", ["clientId": .string(instance.id)]).status == 200)
            #expect(try await send([try await proof()]).refusal == .badProof)
        }
    }

    @Test("A device that replaces its key through its session is answered there; the next session needs the new key")
    func anotherKey() async throws {
        try await RegistrationDoor.run { door in
            let fixture = door.fixture
            let key = try await SealedClient.key(fixture)
            let (instance, newKey) = (try await door.instance(), try ProofKey())
            let client = try await SealedClient(fixture, key, toGateway: false, as: (instance, at: door))
            let url = door.url(of: instance.id)
            let path = try #require(URLComponents(string: url)?.percentEncodedPath)
            let body = JSONValue.object(
                RegistrationDoor.repeated(instance, ["jwks": ["keys": [newKey.jwk.json]]])
            ).serializedBytes()
            var fields: HTTPFields = [
                .contentType: "application/json", .authorization: "DPoP \(instance.token)",
                .contentLength: "\(body.count)",
            ]
            for (name, signer) in [("DPoP", instance.key), ("DPoP-New-Key", newKey)] {
                let field = try #require(HTTPField.Name(name))
                fields[field] = try await door.proof("PUT", url, by: signer, token: instance.token)
            }
            let change = try client.sealed(client.request(.put, path, fields), body, number: 1)
            let changed = try await client.call(change)
            #expect(changed.status == 200, "\(changed.json)")
            let late = try client.sealed(client.request(.get, "/"), number: 2)
            #expect(try await client.send(late.bytes).refusal == .unknownSession)

            let handshake = try SealedClient.handshake(fixture, key, client: instance.id, toGateway: false)
            for (signer, refusal) in [(instance.key, PayloadRefusal.badProof), (newKey, nil)] {
                let proof = try await door.proof("POST", fixture.root("/assent-pe/1/handshake"), by: signer) {
                    $0["pe"] = .string(handshake.request.claim)
                }
                let answer = try await SealedClient.send(
                    fixture, handshake.request.body, toGateway: false, fields: [("DPoP", proof)])
                #expect(answer.refusal == refusal, "\(answer.text)")
                #expect((answer.status == 200) == (refusal == nil))
            }
        }
    }

    @Test(
        "36: A device's proof makes one session, also of copies that come at once, to each node",
        arguments: TheftTests.Place.allCases)
    func copies(_ place: TheftTests.Place) async throws {
        try await place.run(editing: { RegistrationDoor.file($0) }) { servers in
            let node = servers[0]
            let (key, door) = (try await SealedClient.key(node), try await RegistrationDoor(node))
            let instance = try await door.instance()
            let handshake = try SealedClient.handshake(node, key, client: instance.id)
            let proof = try await door.proof(
                "POST", node.gateway("/assent-pe/1/handshake"), by: instance.key,
                claims: { $0["pe"] = .string(handshake.request.claim) })
            let body = handshake.request.body
            let answers: [Answer] = try await withThrowingTaskGroup(of: Answer.self) { group in
                for index in 0..<8 {
                    let other = servers[index % servers.count]
                    group.addTask { try await SealedClient.send(other, body, fields: [("DPoP", proof)]) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let made = answers.filter { $0.status == 200 }
            #expect(made.count == 1 && answers.filter { $0.refusal == .badProof }.count == 7)
            _ = try handshake.finish(try #require(made.first).bytes)
            for other in servers {
                let late = try await SealedClient.send(other, body, fields: [("DPoP", proof)])
                #expect(late.refusal == .badProof, "\(late.text)")
            }
        }
    }

    @Test("A proof that is too old gets a nonce, with which the next one is accepted")
    func nonce() async throws {
        try await RegistrationDoor.run { door in
            let fixture = door.fixture
            let key = try await SealedClient.key(fixture)
            let instance = try await door.instance()
            let handshake = try SealedClient.handshake(fixture, key, client: instance.id, toGateway: false)
            func send(nonce: String?) async throws -> Answer {
                let proof = try await door.proof(
                    "POST", fixture.root("/assent-pe/1/handshake"), by: instance.key,
                    claims: { claims in
                        claims["iat"] = 1
                        claims["nonce"] = nonce.map { .string($0) }
                        claims["pe"] = .string(handshake.request.claim)
                    })
                return try await SealedClient.send(
                    fixture, handshake.request.body, toGateway: false, fields: [("DPoP", proof)])
            }
            let refused = try await send(nonce: nil)
            #expect(refused.refusal == .useNonce)
            #expect(try await send(nonce: refused["dpop-nonce"]).status == 200)
        }
    }

    @Test("An administrator makes, lists and withdraws keys; with a key its sessions end")
    func administration() async throws {
        try await RegistrationDoor.run { door in
            let fixture = door.fixture
            let made = try await door.act("addPayloadKey", ["days": 100])
            #expect(made.status == 200, "\(made.text)")
            let kid = try #require(made.json["kid"]?.string)
            let listed = try #require(
                try await PayloadKeys(fixture.server.context).list().first { $0.kid == kid })
            #expect(listed.notAfter - listed.notBefore == 100 * 86_400)
            let client = try await SealedClient(fixture, listed)
            _ = try await client.call(try client.sealed(client.request(.get, "/open"), number: 1))
            #expect(try await door.act("withdrawPayloadKey", ["kid": .string(kid)]).status == 200)
            let late = try client.sealed(client.request(.get, "/open"), number: 2)
            #expect(try await client.send(late.bytes).refusal == .unknownSession)
            let body = try SealedClient.handshake(fixture, listed).request.body
            #expect(try await SealedClient.send(fixture, body).refusal == .unknownKey)
            let list = try await door.act("listPayloadKeys", [:])
            #expect(list.json["result"]?.array?.first?["withdrawnAt"]?.integer != nil)
            #expect(try await door.act("withdrawPayloadKey", ["kid": .string(kid)]).status == 404)
            #expect(try await door.act("addPayloadKey", ["days": 0]).status == 400)
            #expect(try await fixture.rows("SELECT kid FROM payload_keys WHERE sealed_key IS NOT NULL").isEmpty)
        }
    }
}
