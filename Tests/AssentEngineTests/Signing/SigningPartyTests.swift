import AssentCore
import AssentSigningProtocol
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Signing: what a relying party may ask for")
struct SigningPartyTests {
    @Test("A transaction names a device of its own user: another user's is not found, and is asked nothing")
    func foreignDevice() async throws {
        let world = try await SigningWorld()
        _ = try await TransactionFixture.signIn("bob", world.base.context)
        let (device, container) = try await world.enrolled()
        func ask(_ user: String, _ did: String) async throws -> SigningTransactionRecord {
            var wish = world.wish()
            (wish.user, wish.did) = (user, did)
            return try await world.provider.parties.create(wish)
        }
        let stranger = SigningID(random: SystemRandom()).text
        for (user, did) in [("bob", container.did.text), ("ana", stranger), ("ana", "no id")] {
            #expect(try await refusal { _ = try await ask(user, did) } == "not_found", "\(user), \(did)")
        }
        let known = try #require(try await world.provider.devices.find(container.did.text))
        #expect(try await world.provider.documents.pending(known, at: world.base.context.clock.epochSeconds) == 0)
        let made = try await ask("ana", container.did.text)
        #expect(made.did == container.did)
        #expect(try await device.fetch(made.txn, container).content.txn == made.txn)
    }
}
