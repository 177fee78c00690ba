import AssentCore
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

    @Test("A PIN's session that was stepped up is as fresh as the journey alone, however high its level is")
    func level() async throws {
        let world = try await SigningWorld { $0.freshLevel = 2 }
        let sessions = Sessions(world.base.context)
        let user = world.base.ana.user
        for (journey, isFresh) in [(1, false), (2, true)] {
            var prepared = sessions.prepare(
                userID: user.id, epoch: user.epoch, realm: "/alpha", authLevel: 3, limits: SessionLimits(),
                properties: JSONObject())
            prepared.row.journeyLevel = journey
            _ = try await world.base.database.run([prepared.statement])
            let caller = SigningCaller(try #require(try await sessions.live(token: prepared.token)))
            #expect(caller.session.authLevel == 3)
            let refusal = try await refusal { _ = try await world.provider.invites.make(caller, user: nil) }
            #expect(refusal == (isFresh ? nil : "fresh_authentication_required"))
        }
    }
}
