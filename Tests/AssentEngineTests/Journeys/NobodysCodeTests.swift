import AssentCore
import AssentStore
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("What the answer to a code after a name alone takes, by which somebody could tell who exists and has a key")
struct NobodysCodeTests {
    /// How many statements the answer to a wrong code takes after each of these names alone, where a journey asks for
    /// the code by this node. With `signedInAs`, somebody types them who has the session of that user.
    private static func costs(
        of names: [String], by node: NodeDefinition, on database: any SQLDatabase, clock: any WallClock,
        signing settings: SigningSettings? = nil, signedInAs user: String? = nil
    ) async throws -> [Int] {
        let tally = StatementTally(database)
        let context = try TransactionFixture.context(tally, clock: clock)
        let journey = JourneyDefinition(
            name: "Passwordless", entry: "name",
            nodes: [
                "name": NodeDefinition("UsernameCollectorNode", outcomes: ["outcome": .node("code")]), "code": node,
            ])
        let authentication = Authentication(
            context, realms: ["/alpha": try RealmSignIn(journeys: [journey], defaultJourney: nil)],
            transactions: Transactions(context), passwords: Passwords(context),
            oneTimePasswords: OneTimePasswords(context),
            signing: settings.map { ["/alpha": SigningProvider(context, settings: $0)] } ?? [:],
            proofs: SenderProofs(context))
        var session: Secret?
        if let user {
            let id = try #require(try await Users(context).find(username: user, realm: "/alpha")).id
            session = try await Sessions(context).begin(userID: id, realm: "/alpha", limits: SessionLimits()).token
        }
        var costs: [Int] = []
        // What is read once for all is read for the first.
        for name in Array(names.prefix(1)) + names {
            let start = AuthenticateRequest(
                realm: "/alpha", authIndexType: "service", authIndexValue: journey.name, sessionToken: session)
            let first = try Page(await authentication.authenticate(start))
            let named = AuthenticateRequest(
                realm: "/alpha", sessionToken: session, answer: first.answered([.string(name)]))
            let second = try Page(await authentication.authenticate(named))
            let code = AuthenticateRequest(
                realm: "/alpha", sessionToken: session, answer: second.answered(["wrong"]))
            let before = tally.count
            await expectError(.loginFailed) { try await authentication.authenticate(code) }
            costs.append(tally.count - before)
        }
        return Array(costs.dropFirst())
    }

    @Test("By an authenticator it takes as much for a user with a key as for one without and for a name of nobody")
    func authenticator() async throws {
        let fixture = try await JourneyFixture()
        let costs = try await Self.costs(
            of: ["ana", "ben", "nobody"], by: JourneyFixture.otp, on: fixture.database, clock: fixture.clock)
        #expect(costs.count == 3)
        #expect(Set(costs).count == 1, "\(costs)")
        // Each was counted.
        let counted = try await fixture.database.run(.read("SELECT counter FROM attempts WHERE counter LIKE 'otp:%'"))
        #expect(counted.count == 3)
    }

    @Test("Somebody who is signed in learns by an authenticator's codes no more of other users than anybody else")
    func authenticatorWithSession() async throws {
        let fixture = try await JourneyFixture()
        let costs = try await Self.costs(
            of: ["ben", "nobody"], by: JourneyFixture.otp, on: fixture.database, clock: fixture.clock,
            signedInAs: "ana")
        #expect(costs.count == 2)
        #expect(Set(costs).count == 1, "\(costs)")
    }

    @Test("By a device it takes as much for a user with a key as for one without and for a name of nobody")
    func device() async throws {
        let world = try await SigningWorld {
            $0.oneTimeKeys = [OneTimeKeySettings(label: "counted", kind: .counter)]
        }
        let sdk = try SDKWorld(world)
        _ = try await sdk.enrolled(sdk.device())
        let node = NodeDefinition(
            "DeviceCodeVerifierNode", config: ["key": "counted"],
            outcomes: ["successOutcome": .success, "failureOutcome": .failure, "notRegisteredOutcome": .failure])
        let costs = try await Self.costs(
            of: ["ana", "ben", "nobody"], by: node, on: world.base.database, clock: world.base.clock,
            signing: world.provider.settings)
        #expect(costs.count == 3)
        #expect(Set(costs).count == 1, "\(costs)")
        // Each was counted, the device's by its user.
        let counted = try await world.base.database.run(
            .read("SELECT counter FROM attempts WHERE counter LIKE 'otp:%' OR counter LIKE 'signing:otp:%'"))
        #expect(counted.count == 3)
    }

    @Test("Somebody who is signed in learns by a device's codes no more of other users than anybody else")
    func deviceWithSession() async throws {
        let world = try await SigningWorld {
            $0.oneTimeKeys = [OneTimeKeySettings(label: "counted", kind: .counter)]
        }
        let node = NodeDefinition(
            "DeviceCodeVerifierNode", config: ["key": "counted"],
            outcomes: ["successOutcome": .success, "failureOutcome": .failure, "notRegisteredOutcome": .failure])
        let costs = try await Self.costs(
            of: ["ben", "nobody"], by: node, on: world.base.database, clock: world.base.clock,
            signing: world.provider.settings, signedInAs: "ana")
        #expect(costs.count == 2)
        #expect(Set(costs).count == 1, "\(costs)")
    }
}
