import AssentCore
import AssentSigningProtocol
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Offers that were read lately")
struct KnownOffersTests {
    @Test("A text is the same offer each time, and what is not an offer is refused each time")
    func offer() async throws {
        let (world, _, enrolled, _) = try await SigningWorld.withEnrolledPIN()
        let container = try #require(try await world.provider.devices.find(enrolled.did))
        let offers = KnownOffers()
        for _ in 0..<2 {
            let offer = try offers.offer(container.offer)
            #expect(offer.did == enrolled.did)
            #expect(offer.slots.map(\.mode) == [.assisted])
            #expect(throws: SigningProtocolError.self) { try offers.offer("a.b.c") }
            #expect(throws: SigningProtocolError.self) { try offers.offer(container.enrol) }
        }
    }
}
