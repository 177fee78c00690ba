import AssentSigningProtocol
import AssentStore
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Fresh authentication")
struct SigningFreshnessTests {
    @Test("Only a session that a journey has made for a user invites a device, however young the others are")
    func journeys() async throws {
        let world = try await SigningWorld()
        _ = try await world.provider.invites.make(world.ana, user: nil, did: nil)
        for (kind, isOfJourney) in [(SessionKind.user, false), (.implicit, true), (.stateless, true)] {
            var session = world.base.ana
            session.kind = kind
            session.isOfJourney = isOfJourney
            await #expect(throws: SigningRefusal(.freshAuthenticationRequired), "\(kind)") {
                try await world.provider.invites.make(SigningCaller(session), user: nil, did: nil)
            }
        }
    }
}
