import AssentCore
import AssentSigningProtocol
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("The nonces of proofs, and what is remembered of proofs")
struct SigningNonceTests {
    @Test("A nonce with another tag, time or random bytes is not one of this issuer, and neither is another issuer's")
    func forged() async throws {
        let world = try await SigningWorld()
        let nonces = world.provider.door.nonces
        let good = try #require(Base64URL.decode(nonces.make()))
        #expect(nonces.accepts(Base64URL.encode(good)))
        for index in good.indices {
            var changed = good
            changed[index] ^= 1
            #expect(!nonces.accepts(Base64URL.encode(changed)), "byte \(index)")
        }
        // The tag of one nonce with the random bytes of another one of the same second.
        let other = try #require(Base64URL.decode(nonces.make()))
        #expect(!nonces.accepts(Base64URL.encode(good.prefix(16) + other.suffix(16))))
        #expect(!nonces.accepts(Base64URL.encode(good.dropLast())) && !nonces.accepts(Base64URL.encode(good + [0])))
        let issuer = SigningIssuer(name: world.name + "/other", realm: "/alpha")
        #expect(!nonces.accepts(SigningNonces(world.base.context, issuer: issuer).make()))
        let (device, container) = try await world.enrolled()
        let body = try await device.sealed(EmptyBody().encoded(), sender: container.did.text)
        var guessed = try #require(Base64URL.decode(world.provider.door.nonce()))
        guessed[31] ^= 1
        let proof = try await device.proof(
            container.did, path: "status", body: body, nonce: Base64URL.encode(guessed))
        #expect(try await refusal { _ = try await world.send("status", proof: proof, body: body) } == "use_nonce")
    }

    @Test("A nonce is valid for five minutes, and half a minute ahead of a clock that is late")
    func time() async throws {
        let world = try await SigningWorld()
        let (nonces, clock) = (world.provider.door.nonces, world.base.clock)
        let nonce = nonces.make()
        clock.advance(by: -30)
        #expect(nonces.accepts(nonce))
        clock.advance(by: -1)
        #expect(!nonces.accepts(nonce))
        clock.advance(by: 31 + 299)
        #expect(nonces.accepts(nonce))
        clock.advance(by: 1)
        #expect(!nonces.accepts(nonce))
    }

    @Test("A proof is remembered as long as any node takes its nonce, also when spent proofs are deleted")
    func memory() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let body = try await device.sealed(UpdateBody(name: "phone").encoded(), sender: container.did.text)
        let proof = try await device.proof(container.did, path: "update", body: body)
        // A node whose clock is ahead has made the nonce.
        world.base.clock.advance(by: -30)
        _ = try await world.send("update", proof: proof, body: body)
        // Another one deletes what is over; then one whose clock is behind gets the proof again.
        world.base.clock.advance(by: 389)
        try await SigningHousekeeping.purge(world.base.context)
        world.base.clock.advance(by: -60)
        #expect(try await refusal { _ = try await world.send("update", proof: proof, body: body) } == "replay")
    }

    @Test("A container makes 120 calls in a minute; the next is refused, and a minute later it goes on")
    func rate() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let other = try await world.enrolled()
        // The calls of the enrolment are over.
        world.base.clock.advance(by: 60)
        for _ in 0..<120 { _ = try await device.status(container.did) }
        let error = await #expect(throws: TestRefusal.self) { try await device.status(container.did) }
        #expect(error?.code == "rate_limited")
        _ = try await other.device.status(other.container.did)
        world.base.clock.advance(by: 60)
        #expect(try await device.status(container.did).state == .active)
    }
}
