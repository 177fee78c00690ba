import AssentCore
import AssentSigningProtocol
import AssentStore
import SigningTesting
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

    @Test("What invites no device gets no new keys for one either, and unlocks no PIN")
    func resets() async throws {
        let (world, _, container, _) = try await SigningWorld.withEnrolledPIN()
        let did = container.did.text
        func refusals(of caller: SigningCaller) async throws -> [String?] {
            [
                try await refusal { _ = try await world.provider.slots.act(caller, did: did, .unlock, on: "signing") },
                try await refusal { _ = try await world.provider.invites.make(caller, user: nil, did: did) },
            ]
        }
        // A session of a PIN or of a web link is a user's, and no journey has made it.
        let others = [(SessionKind.user, false), (.implicit, false), (.implicit, true), (.stateless, true)]
        for (kind, isOfJourney) in others {
            var session = world.base.ana
            session.kind = kind
            session.isOfJourney = isOfJourney
            let refused = try await refusals(of: SigningCaller(session))
            #expect(refused == ["fresh_authentication_required", "fresh_authentication_required"], "\(kind)")
        }
        #expect(try await refusals(of: world.ana) == [nil, nil])
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
