import AssentCore
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Kinds of callers, and the doors that are open for them")
struct DoorTests {
    @Test("A door is open for the kinds that it names, and closed for all others")
    func matrix() {
        let users: Set<CallerKind> = [.user, .stateless]
        let expected: [Door: Set<CallerKind>] = [
            .stepUp: [.user], .userInfo: users, .policySubject: users, .ownSession: users, .ownCode: users,
            .account: [.user],
            .administration: [.user], .renewal: [.user], .approval: [.user], .webLink: [.user],
            .relyingParty: [.client], .tokenStatus: [.user, .stateless, .implicit, .device, .client],
        ]
        #expect(expected.count == Door.allCases.count)
        for door in Door.allCases {
            for kind in CallerKind.allCases {
                #expect(door.admits(kind) == (expected[door]?.contains(kind) == true), "\(door) \(kind)")
            }
        }
    }

    @Test("A token is of the kind that its session was made for, and introspection says so")
    func kinds() async throws {
        // One of the kind `stateless` lives as long as an installation's key: `StatelessTests`.
        for kind in SessionKind.allCases where kind != .stateless {
            let world = try await TokenlessFixture()
            func issued(_ kind: SessionKind) async throws -> IssuedTokens {
                try await world.grants.tokens(
                    for: world.signIn(), as: kind, scopes: ["openid", "accounts", "offline_access"],
                    to: try await world.caller("back end"), keyThumbprint: nil, spending: [], claimingProof: {})
            }
            // The consent that the others rest on.
            let first = try await issued(.user)
            let tokens = kind == .user ? first : try await issued(kind)
            let access = try #require(await world.fixture.grants.access(token: tokens.accessToken))
            #expect(access.kind == CallerKind(kind))
            #expect(access.owner?.session?.isOfJourney == false)
            #expect((tokens.refreshToken != nil) == (kind == .user))
            if kind != .user { #expect(!access.isOffline) }
            let form = try ProviderFixture.parameters(
                ["token": tokens.accessToken.reveal()], TokenlessFixture.credentials("back end"))
            let told = try await TokenIntrospection(world.fixture.grants).answer(form)
            #expect(told["assent_kind"]?.string == kind.rawValue)
        }
    }

    @Test("A session of a kind that this version does not know opens nothing")
    func unknownKind() async throws {
        let fixture = try await ProviderFixture()
        #expect(try await Sessions(fixture.context).live(token: fixture.sessionToken)?.kind == .user)
        _ = try await fixture.database.run(SQLStatement("UPDATE sessions SET kind = 'other'"))
        await #expect(throws: StoreError.self) {
            try await Sessions(fixture.context).live(token: fixture.sessionToken)
        }
    }

    @Test("A policy for apps or clients is for those that call for themselves; NOT matches neither")
    func subjects() {
        let (pay, jobs) = (ClientItself.installation(ofApp: "pay"), ClientItself.client("jobs"))
        #expect(PolicySubject.app(["pay"]).matches(nil, client: pay))
        #expect(PolicySubject.client(["jobs"]).matches(nil, client: jobs))
        for client in [jobs, .client("pay"), .installation(ofApp: "other"), nil] {
            #expect(!PolicySubject.app(["pay"]).matches(nil, client: client))
        }
        for client in [pay, .client("other"), .installation(ofApp: "jobs"), nil] {
            #expect(!PolicySubject.client(["jobs"]).matches(nil, client: client))
        }
        #expect(!PolicySubject.not(.app(["other"])).matches(nil, client: pay))
        #expect(!PolicySubject.not(.client(["other"])).matches(nil, client: jobs))
        #expect(!PolicySubject.authenticatedUsers.matches(nil, client: pay))
    }
}
