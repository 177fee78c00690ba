import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Crypto
import Foundation
import Testing

@testable import AssentEngine

@Suite("For how long a proof is remembered, and what a nonce's time may be")
struct ProofMemoryTests {
    private static let url = "https://am.example/am/oauth2/access_token"
    private static let key = Result { try SoftwareSigningKey.generate(.es256) }

    private static func refusal(
        _ proofs: SenderProofs, _ field: String, policy: NoncePolicy = .offered
    ) async throws -> String? {
        do {
            let presented = PresentedProof(
                fields: [field], method: "POST", url: url, server: .authorizationServer)
            try await proofs.claim(try #require(try proofs.check(presented, accessToken: nil, policy: policy)))
            return nil
        } catch let refusal as SenderProofRefusal {
            return refusal.code.name
        }
    }

    /// A node purges by its own clock. Another one, whose clock is behind, accepts the proof's nonce, or its `iat`, for
    /// longer.
    @Test(
        "What one node has purged as too old, no node whose clock is up to a minute behind accepts again",
        arguments: [(true, 240.0), (false, 60.0)])
    func behind(hasNonce: Bool, lifetime: Double) async throws {
        let fixture = try await TransactionFixture()
        try await SenderProofs.begin(fixture.context)
        let proofs = SenderProofs(fixture.context)
        fixture.clock.advance(by: 300)
        let proof = try await DPoPProof.make(
            method: "POST", uri: Self.url, nonce: hasNonce ? proofs.nonce(of: .authorizationServer) : nil,
            key: Self.key.get(), clock: ManualClock(fixture.clock.now))
        #expect(try await Self.refusal(proofs, proof) == nil)
        fixture.clock.advance(by: lifetime + 5)
        try await proofs.purge()
        fixture.clock.advance(by: -6)
        #expect(try await Self.refusal(proofs, proof) == "invalid_dpop_proof")
        fixture.clock.advance(by: 6 + 54)
        try await proofs.purge()
        fixture.clock.advance(by: -59.5)
        #expect(try await Self.refusal(proofs, proof) == "invalid_dpop_proof")
    }

    @Test(
        "A nonce is valid for four minutes, and from a minute before the time that it names",
        arguments: [(-61.0, false), (-60, true), (0, true), (239, true), (239.999, true), (240, false), (7200, false)])
    func nonces(seconds: Double, isValid: Bool) async throws {
        let fixture = try await TransactionFixture()
        let nonces = DPoPNonces(fixture.context, of: .authorizationServer)
        let made = nonces.make()
        fixture.clock.advance(by: seconds)
        #expect((nonces.madeAt(made) != nil) == isValid)
    }

    @Test("A nonce is old enough for a new one from the half of its life on", arguments: [(119.0, false), (120, true)])
    func aging(seconds: Double, isAging: Bool) async throws {
        let fixture = try await TransactionFixture()
        let nonces = DPoPNonces(fixture.context, of: .gateway)
        let madeAt = try #require(nonces.madeAt(nonces.make()))
        fixture.clock.advance(by: seconds)
        #expect(nonces.isAging(madeAt: madeAt) == isAging)
    }

    @Test("A nonce of another length, or with anything around it, is none", arguments: ["", "A", "AAAA", "="])
    func lengths(more: String) async throws {
        let fixture = try await TransactionFixture()
        let nonces = DPoPNonces(fixture.context, of: .authorizationServer)
        let nonce = nonces.make()
        #expect((nonces.madeAt(nonce + more) != nil) == more.isEmpty)
        #expect(nonces.madeAt(more) == nil)
        #expect(nonces.madeAt(String(nonce.dropLast(4))) == nil)
        #expect(nonces.madeAt(nonce + String(repeating: "A", count: 64)) == nil)
    }

    @Test("A nonce is a time and the code of that alone, so that all nodes make and know the same, time after time")
    func form() async throws {
        let fixture = try await TransactionFixture()
        let nonces = DPoPNonces(fixture.context, of: .gateway)
        let key = fixture.context.masterKey.derivedSecret(for: .gatewayNonce).symmetricKey
        for _ in 0..<3 {
            let now = fixture.clock.epochMilliseconds
            let time = withUnsafeBytes(of: now.bigEndian) { Array($0) }
            let code = HMAC<SHA256>.authenticationCode(for: time, using: key).prefix(16)
            let nonce = nonces.make()
            #expect(nonce == Base64URL.encode(time + code))
            #expect(nonces.madeAt(nonce) == now)
            fixture.clock.advance(by: 1)
        }
    }

    @Test("A nonce that came before still ages, is one server's, and no other writing of it is taken for it")
    func remembered() async throws {
        let fixture = try await TransactionFixture()
        let nonces = DPoPNonces(fixture.context, of: .gateway)
        var nonce = nonces.make()
        while !nonce.contains("K") {
            fixture.clock.advance(by: 1)
            nonce = nonces.make()
        }
        let madeAt = fixture.clock.epochMilliseconds
        for _ in 0..<2 { #expect(nonces.madeAt(nonce) == madeAt) }
        // Swift takes the Kelvin sign for a K.
        let kelvin = nonce.replacingOccurrences(of: "K", with: "\u{212A}")
        #expect(kelvin == nonce)
        #expect(nonces.madeAt(kelvin) == nil)
        let another = DPoPNonces(fixture.context, of: .authorizationServer)
        for _ in 0..<2 { #expect(another.madeAt(nonce) == nil) }
        fixture.clock.advance(by: 240)
        for _ in 0..<2 { #expect(nonces.madeAt(nonce) == nil) }
        fixture.clock.advance(by: -240)
        #expect(nonces.madeAt(nonce) == madeAt)
    }

    @Test("A nonce that is told lies ahead by no more than clocks may differ")
    func told() async throws {
        let fixture = try await TransactionFixture()
        let nonces = DPoPNonces(fixture.context, of: .authorizationServer)
        let now = fixture.clock.epochMilliseconds
        for (since, time) in [
            (0, now), (now - 1, now), (now + 1, now + 1), (now + 60_000, now + 60_000), (now + 60_001, now + 60_000),
            (.max, now + 60_000),
        ] as [(Int64, Int64)] { #expect(nonces.madeAt(nonces.make(since: since)) == time) }
    }

    @Test("A proof is remembered by its key and its jti: nobody can use up another key's")
    func names() {
        let name = DPoPReplays.name(thumbprint: "key", jti: "jti")
        #expect(name == DPoPReplays.name(thumbprint: "key", jti: "jti"))
        // Nodes of two versions share the table, so the name stays as it is.
        #expect(name == Base64URL.encode(SHA2.sha256(Array("key.jti".utf8))))
        for (thumbprint, jti) in [("other", "jti"), ("key", "other"), ("", "jti"), ("key", ""), ("jti", "key")] {
            #expect(DPoPReplays.name(thumbprint: thumbprint, jti: jti) != name)
        }
    }

    @Test("What needs a key is for that key alone, and what needs none is for all")
    func boundKey() {
        let key = SenderBinding.key(thumbprint: "a")
        #expect(SenderBinding.allows(nil, where: nil) && SenderBinding.allows("a", where: nil))
        #expect(SenderBinding.allows("a", where: key))
        for proved in ["b", nil, ""] { #expect(!SenderBinding.allows(proved, where: key)) }
    }
}
