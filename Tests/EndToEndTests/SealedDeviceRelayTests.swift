import AssentCore
import AssentPayload
import HTTPTypes
import Testing

@testable import Assent

/// The same relay before an installation that proves its registered key for each session.
@Suite("Payload encryption: a relay that ends TLS, before sessions of the role device")
struct SealedDeviceRelayTests {
    /// What is done to each handshake, so that no session comes of it.
    private struct Deed: Sendable {
        let name: String
        let meddle: TLSEnder.Meddler

        init(_ name: String, _ change: @escaping @Sendable (inout TLSEnder.Asked) throws -> Void) {
            self.name = name
            meddle = { asked, pass in
                var asked = asked
                try change(&asked)
                return try await pass(asked)
            }
        }

        init(_ name: String, meddling: @escaping TLSEnder.Meddler) { (self.name, meddle) = (name, meddling) }

        /// With members of the body changed; `nil` takes one away.
        static func members(_ name: String, _ members: [String: JSONValue?]) -> Deed {
            Deed(name) { asked in
                var object = try #require(try JSONValue.parse(asked.body).object)
                for (member, value) in members { object[member] = value }
                asked.body = JSONValue.object(object).serializedBytes()
            }
        }
    }

    /// What is done with proofs and roles; `old` is the handshake of an earlier session.
    private static func deeds(_ old: TLSEnder.Asked) throws -> [Deed] {
        let oldProof = try #require(old.head.headerFields[.dpop])
        let other = Base64URL.encode([UInt8](repeating: 9, count: 32))
        return [
            Deed("without the proof") { $0.head.headerFields[.dpop] = nil },
            Deed("with an earlier proof") { $0.head.headerFields[.dpop] = oldProof },
            Deed("with two proofs") { $0.head.headerFields.append(.init(name: .dpop, value: oldProof)) },
            Deed("an earlier handshake as it was") { asked in asked = old },
            Deed("an earlier body with the new proof") { $0.body = old.body },
            Deed("with a bit of the proof flipped") { asked in
                var proof = Array((asked.head.headerFields[.dpop] ?? "").utf8)
                if let last = proof.indices.last.map({ $0 - 5 }), proof.indices.contains(last) { proof[last] ^= 1 }
                asked.head.headerFields[.dpop] = String(decoding: proof, as: UTF8.self)
            },
            Deed(
                "sent twice, with the second reply",
                meddling: { asked, pass in
                    _ = try await pass(asked)
                    return try await pass(asked)
                }),
            Deed(
                "refused, with a nonce that no proof can have",
                meddling: { _, _ in
                    var told = TLSEnder.Told.json(401, PayloadRefusal.badProof.body)
                    told.head.headerFields[.dpopNonce] = String(repeating: "n", count: 600)
                    return told
                }),
            .members("of another installation", ["client": "bank-pay~other"]),
            .members("of nobody", ["client": nil]),
            .members("as an app with a client", ["role": "app"]),
            .members("as an app", ["role": "app", "client": nil]),
            .members("with another key", ["e": .string(other)]),
            .members("as another app", ["app": "other"]),
        ]
    }

    @Test("36: Whatever it does with proof, client or role of each handshake, nothing of the call leaves")
    func handshakes() async throws {
        try await RelayScene.run(registering: true) { scene in
            let first = try scene.client()
            #expect(await scene.call(first, .post) == .answered)
            let isHandshake = { @Sendable (asked: TLSEnder.Asked) in asked.head.path == RelayScene.handshake }
            let agreed = try #require(scene.ender.passed.last { isHandshake($0.asked) })
            #expect(agreed.told.head.status == .ok)
            let body = try JSONValue.parse(agreed.asked.body)
            #expect(body["role"] == "device" && body["client"]?.string?.hasPrefix("bank-pay~") == true)
            for deed in try Self.deeds(agreed.asked) {
                let name = deed.name
                scene.ender.clear()
                let before = scene.ledger.entries.count
                scene.ender.meddle { asked, pass in
                    try await isHandshake(asked) ? deed.meddle(asked, pass) : pass(asked)
                }
                let client = try scene.client()
                #expect(await scene.call(client, .post) == .notSent, "\(name)")
                #expect(!scene.ender.arrived.isEmpty && scene.ender.arrived.allSatisfy(isHandshake), "\(name)")
                #expect(scene.ledger.entries.count == before)
                // The next call of the same client makes another handshake.
                scene.ender.clear()
                scene.pass(5)
                #expect(await scene.call(client, .post) == .answered, "\(name)")
                #expect(scene.runs(.post, since: before) == 1, "\(name)")
            }
        }
    }

    @Test("36: Whatever it does to a message of such a session, no changed call runs, and no unsafe one twice")
    func messages() async throws {
        try await RelayScene.run(registering: true) { scene in
            // Of a request and of a reply by turns: heads and chunks are those of the other role.
            let changes = SealedRelayTests.fields
            for index in changes.indices where [0, 3].contains(index % 4) {
                let change = changes[index]
                let client = try scene.client()
                #expect(await scene.call(client, .get) == .answered)
                for method in [HTTPRequest.Method.post, .get] {
                    let before = scene.ledger.entries.count
                    scene.ender.meddle(RelayScene.next(RelayScene.message, change.meddle))
                    let outcome = await scene.call(client, method)
                    let isRepeated = method == .get && !change.isHandedOver
                    let executions = (change.isExecuted ? 1 : 0) + (isRepeated ? 1 : 0)
                    #expect(outcome == (isRepeated ? .answered : .unknown), "\(change.name), \(method)")
                    #expect(scene.runs(method, since: before) == executions, "\(change.name), \(method)")
                }
            }
        }
    }

    @Test("36: A message in a session of an app opens in none of an installation's, and the other way round")
    func roles() async throws {
        try await RelayScene.run(registering: true) { scene in
            var plain = scene
            plain.prover = nil
            let (device, app) = (try scene.client(), try plain.client())
            for client in [device, app] { #expect(await scene.call(client, .get) == .answered) }
            let messages = scene.ender.passed.map(\.asked).filter { $0.head.path == RelayScene.message }
            let sessions = messages.map { Array($0.body.dropFirst().prefix(16)) }
            #expect(Set(sessions).count == 2)
            for (client, other) in zip([device, app], sessions.reversed()) {
                let before = scene.ledger.entries.count
                scene.ender.meddle(
                    RelayScene.next(RelayScene.message) { asked, pass in
                        var asked = asked
                        asked.body.replaceSubrange(1..<17, with: other)
                        return try await pass(asked)
                    })
                #expect(await scene.call(client, .post) == .unknown)
                #expect(scene.runs(.post, since: before) == 0)
                #expect(await scene.call(client, .get) == .answered)
            }
        }
    }
}
