import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import Crypto
import Foundation
import HTTPTypes
import StoreTesting
import Testing

@testable import AssentEngine

/// Who has recorded all traffic and then steals the database with its master key, and so the static keys.
@Suite("Payload encryption: what a later theft of the server's keys opens")
struct ForwardSecrecyTests {
    private static let origin = "https://api.bank.example"
    private static let request = HTTPRequest(
        method: .post, scheme: "https", authority: "api.bank.example", path: "/transfers")
    private static let secret = Array("to Bob, 200 EUR".utf8)

    private let fixture: TransactionFixture
    private let keys: PayloadKeys
    private let sessions: PayloadSessions
    private let handshakes: PayloadHandshakes
    private let key: PayloadKeys.Listed

    init() async throws {
        fixture = try await TransactionFixture()
        keys = PayloadKeys(fixture.context)
        sessions = PayloadSessions(fixture.context, keys: keys)
        handshakes = PayloadHandshakes(
            fixture.context, keys: keys, sessions: sessions, proofs: SenderProofs(fixture.context),
            versions: SealedVersions([:]))
        let now = fixture.clock.epochSeconds
        key = try await keys.add(notBefore: now, notAfter: now + 86_400) { _ in .read("SELECT 1 AS one") }
    }

    /// What passes where TLS ends: a handshake both ways, and a message both ways.
    private struct Capture {
        let asked: HandshakeRequest
        let answered: HandshakeReply
        let request: [UInt8]
        let reply: [UInt8]

        /// What opens with some secrets: the plaintext of both messages, as far as they do.
        func opened(with secrets: PayloadSecrets) throws -> [[UInt8]] {
            let head = try FrameHead(request.prefix(FrameHead.length))
            return [
                try? Self.open(request, key: secrets.request, bound: []),
                try? Self.open(reply, key: secrets.reply, bound: head.binding),
            ].compactMap(\.self)
        }

        private static func open(_ frame: [UInt8], key: SymmetricKey, bound: [UInt8]) throws -> [UInt8] {
            var opener = FrameOpener(try FrameHead(frame.prefix(FrameHead.length)), key: key, bound: bound)
            let plaintext = try opener.open(frame.dropFirst(FrameHead.length))
            try opener.finish()
            return plaintext
        }
    }

    /// What a thief takes away with it: the rows, and what the master key opens of them.
    private struct Loot {
        let statics: [Curve25519.KeyAgreement.PrivateKey]
        let sessions: [PayloadSecrets]

        /// What opens of a capture.
        func opened(_ capture: Capture) throws -> [[UInt8]] {
            // The static key agrees with the client's ephemeral key; of the server's there is the public half alone.
            let guesses = try statics.flatMap { key in
                try [key, Curve25519.KeyAgreement.PrivateKey(rawRepresentation: [UInt8](repeating: 1, count: 32))].map {
                    try PayloadSecrets(
                        peer: capture.asked.peer(at: ForwardSecrecyTests.origin),
                        staticKey: ServerPayloadKey(key, notAfter: .distantFuture), ephemeral: $0,
                        clientEphemeral: capture.asked.ephemeral, session: capture.answered.session)
                }
            }
            return try (guesses + sessions).flatMap { try capture.opened(with: $0) }
        }
    }

    /// A client's call, as it passes, and the keys that are in the memory of both sides alone.
    private func call() async throws -> (capture: Capture, secrets: PayloadSecrets) {
        let peer = PayloadPeer(
            role: .app, origin: Self.origin, client: nil, app: "bank", version: "3.2.0", platform: "linux")
        let known = try PayloadKey(try #require(Base64URL.decode(key.publicKey)))
        let client = try ClientHandshake(peer, serverKey: known, random: SystemRandom())
        let proof = PresentedProof(fields: [], method: "POST", url: Self.origin, server: .gateway)
        let answer = await handshakes.answer(
            PayloadHandshakes.Call(body: client.request.body, proof: proof, origin: Self.origin, address: nil))
        let answered = try answer.result.get()
        let secrets = try client.finish(answered.body).secrets
        let head = FrameHead(.request, session: secrets.session, number: 1, random: SystemRandom())
        let sealer = FrameSealer(head, key: secrets.request, bound: [])
        let request = try sealed(sealer, BinaryHTTPWriter.request(Self.request, content: Self.secret))
        _ = try await sessions.opener(head, origin: Self.origin)
        let reply = try sealed(
            try sessions.claim(head),
            BinaryHTTPWriter.response(HTTPResponse(status: .created), content: Self.secret))
        sessions.end(head)
        let capture = Capture(asked: client.request, answered: answered, request: request, reply: reply)
        return (capture, secrets)
    }

    private func sealed(_ sealer: FrameSealer, _ plaintext: [UInt8]) throws -> [UInt8] {
        var sealer = sealer
        return try sealer.seal(plaintext + Padding.bytes(behind: plaintext.count)) + sealer.finish()
    }

    /// All that can be stolen now.
    private func loot() async throws -> Loot {
        let (database, masterKey) = (fixture.context.database, fixture.context.masterKey)
        let statics = try await database.run(
            .read("SELECT kid, sealed_key FROM payload_keys WHERE sealed_key IS NOT NULL")
        ).map { row in
            let secret = try masterKey.open(
                try row.blob("sealed_key"), for: .payloadKey, context: try row.text("kid"))
            return try secret.withUnsafeBytes { try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: $0) }
        }
        guard TestDatabase.isPostgreSQL else {
            // One process has them in its memory alone: no table could have one.
            let tables = try await database.run(
                .read("SELECT name FROM sqlite_master WHERE name LIKE '%payload_session%'"))
            #expect(tables.isEmpty)
            return Loot(statics: statics, sessions: [])
        }
        let sessions = try await database.run(
            .read("SELECT id, kid, client_key, sealed, begun_at, used_at FROM payload_sessions")
        ).map { row in
            let id = try #require(Base64URL.decode(try row.text("id")))
            return try StoredPayloadSession(id, row, masterKey).secrets
        }
        return Loot(statics: statics, sessions: sessions)
    }

    private func isTold(_ opened: [[UInt8]]) -> Bool {
        opened.count == 2 && opened.allSatisfy { $0.firstRange(of: Self.secret) != nil }
    }

    @Test("39: Keys and database open a live session's traffic where nodes share it, and nothing after its end")
    func idle() async throws {
        let (capture, secrets) = try await call()
        let live = try await loot()
        #expect(live.statics.count == 1)
        // The controls: with the session's own keys all is read; and what nodes share can be stolen while the session
        // lives. One process shares nothing.
        let known = try capture.opened(with: secrets)
        #expect(isTold(known))
        let stolen = try live.opened(capture)
        #expect(isTold(stolen) == TestDatabase.isPostgreSQL && stolen.isEmpty != TestDatabase.isPostgreSQL)
        fixture.clock.advance(by: 800)
        try await sessions.look()
        try await sessions.purge()
        let late = try await loot()
        #expect(late.statics.count == 1 && late.sessions.isEmpty)
        let opened = try late.opened(capture)
        #expect(opened.isEmpty)
    }

    @Test("39: A key that is withdrawn takes its sessions along: what is stolen then opens nothing")
    func withdrawn() async throws {
        let (capture, _) = try await call()
        // Stolen before, the static key is still of no use for what was recorded.
        let live = try await loot()
        let statics = live.statics
        #expect(statics.count == 1)
        // The control: until then the session could be stolen as well, where nodes share it.
        let stolen = try live.opened(capture)
        #expect(isTold(stolen) == TestDatabase.isPostgreSQL)
        #expect(try await keys.withdraw(key.kid, noting: .read("SELECT 1 AS one")))
        try await sessions.end(ofKey: key.kid)
        let late = try await loot()
        #expect(late.statics.isEmpty && late.sessions.isEmpty)
        let opened = try Loot(statics: statics, sessions: late.sessions).opened(capture)
        #expect(opened.isEmpty)
    }
}
