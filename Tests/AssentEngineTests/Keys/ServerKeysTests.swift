import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine

@Suite("The server's keys")
struct ServerKeysTests {
    @Test("Twenty nodes that start at once, over two instances on one file, end up with one key for each purpose")
    func creationRace() async throws {
        let fixture = try await ProviderFixture()
        let second = try await fixture.secondNode().context
        let sets = try await withThrowingTaskGroup(of: Set<String>.self) { group in
            for index in 0..<20 {
                group.addTask {
                    let keys = ServerKeys(index.isMultiple(of: 2) ? fixture.context : second)
                    let token = try await keys.sign(JSONObject(), type: "at+jwt", for: .accessToken)
                    let keyID = try UnverifiedJWS.parse(token.reveal()).keyID
                    let published = try await keys.published().keys.compactMap(\.keyID)
                    #expect(published.contains(keyID ?? ""))
                    return Set(published)
                }
            }
            return try await group.reduce(into: Set<Set<String>>()) { $0.insert($1) }
        }
        #expect(sets.count == 1)
        #expect(sets.first?.count == ServerKeys.Purpose.tokens.count)
        #expect(try await fixture.count("server_keys") == 2)
    }

    @Test("Published are the public halves, each called by its thumbprint")
    func published() async throws {
        let fixture = try await ProviderFixture()
        let document = try await fixture.grants.keys.published().json
        #expect(document["keys"]?.array?.count == 2)
        for entry in document["keys"]?.array ?? [] {
            let key = try JWK(entry)
            #expect(key.keyID == key.thumbprint)
            #expect(key.algorithm == .es256)
            #expect(key.use == "sig")
            #expect(entry["d"] == nil)
        }
    }

    @Test("A retired key stays published for its time and is gone afterwards")
    func retirement() async throws {
        let fixture = try await ProviderFixture()
        let keys = fixture.grants.keys
        let old = try #require(
            UnverifiedJWS.parse(try await keys.sign(JSONObject(), type: "JWT", for: .idToken).reveal()).keyID)
        try await keys.rotate(.idToken)
        func isPublished() async throws -> Bool { try await keys.published().keys.contains { $0.keyID == old } }
        #expect(try await isPublished())
        fixture.clock.advance(by: Double(keys.retention + ServerKeys.staleness - 1))
        #expect(try await isPublished())
        fixture.clock.advance(by: 1)
        #expect(try await !isPublished())
        #expect(try await keys.purge() == 0)
        fixture.clock.advance(by: Double(ServerKeys.hintRetention))
        #expect(try await keys.purge() == 1)
        #expect(try await fixture.count("server_keys") == 2)
    }

    @Test("A rotation on another node is seen within the staleness")
    func staleness() async throws {
        let fixture = try await ProviderFixture()
        let second = try await fixture.secondNode().keys
        func signer(_ keys: ServerKeys) async throws -> String? {
            try UnverifiedJWS.parse(try await keys.sign(JSONObject(), type: "JWT", for: .idToken).reveal()).keyID
        }
        let old = try await signer(second)
        try await fixture.grants.keys.rotate(.idToken)
        #expect(try await signer(fixture.grants.keys) != old)
        fixture.clock.advance(by: Double(ServerKeys.staleness - 1))
        #expect(try await signer(second) == old)
        fixture.clock.advance(by: 1)
        #expect(try await signer(second) == signer(fixture.grants.keys))
    }

    @Test("A key that another node has just made is published at once, and what is known while the database is away")
    func publishedAtOnce() async throws {
        let fixture = try await ProviderFixture()
        // Its first write kills it, and it needs none: the keys are there.
        let database = NodeDatabase(fixture.database, [.crashBefore])
        _ = (try await fixture.grants.keys.published(), try await fixture.grants.keys.publishedIdentityKeys())
        let context = EngineContext(
            database: database, clock: fixture.clock, random: SystemRandom(), masterKey: fixture.context.masterKey,
            logger: fixture.context.logger)
        let second = ServerKeys(context)
        _ = (try await second.published(), try await second.publishedIdentityKeys())
        for purpose in ServerKeys.Purpose.allCases {
            try await fixture.grants.keys.rotate(purpose)
            fixture.clock.advance(by: 1)
            let token = try await fixture.grants.keys.sign(JSONObject(), type: "JWT", for: purpose)
            let keyID = try UnverifiedJWS.parse(token.reveal()).keyID
            let keys = [try await second.published(), try await second.publishedIdentityKeys()].flatMap(\.keys)
            #expect(keys.contains { $0.keyID == keyID }, "\(purpose)")
        }
        _ = try? await context.database.run(SQLStatement("DELETE FROM leases"))
        #expect(database.isDead)
        fixture.clock.advance(by: Double(ServerKeys.staleness - 1))
        #expect(try await second.published().keys.count == 4)
        fixture.clock.advance(by: 1)
        await #expect(throws: StoreError(.unavailable, "")) { try await second.published() }
    }

    @Test("Rotations at the same moment on two nodes leave one key that signs")
    func rotationRace() async throws {
        let fixture = try await ProviderFixture()
        let second = try await fixture.secondNode().keys
        _ = try await second.published()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<10 {
                group.addTask {
                    try await (index.isMultiple(of: 2) ? fixture.grants.keys : second).rotate(.accessToken)
                }
            }
            try await group.waitForAll()
        }
        #expect(try await fixture.count("server_keys", where: "purpose = 'access_token' AND retired_at IS NULL") == 1)
    }

    @Test("The key for identities is made when it is needed, once, is in a set of its own, and signs nothing else")
    func identityKey() async throws {
        let fixture = try await ProviderFixture()
        let nodes = [fixture.grants.keys, try await fixture.secondNode().keys]
        #expect(try await nodes[0].published().keys.count == 2)
        #expect(try await nodes[0].purposesInUse() == [.idToken, .accessToken])
        await #expect(throws: EngineError(.invalidRequest)) { try await nodes[0].rotate(.gatewayIdentity) }
        #expect(try await fixture.count("server_keys") == 2)
        let sets = try await withThrowingTaskGroup(of: [String].self) { group in
            for index in 0..<10 {
                group.addTask { try await nodes[index % 2].publishedIdentityKeys().keys.compactMap(\.keyID) }
            }
            return try await group.reduce(into: Set<[String]>()) { $0.insert($1) }
        }
        #expect(sets.count == 1 && sets.first?.count == 1)
        #expect(try await nodes[0].purposesInUse() == ServerKeys.Purpose.allCases)
        let token = try await nodes[0].sign(JSONObject(), type: "JWT", for: .gatewayIdentity)
        #expect(try await nodes[1].claims(of: token, type: "JWT", for: .gatewayIdentity) != nil)
        for purpose in ServerKeys.Purpose.tokens {
            #expect(try await nodes[1].claims(of: token, type: "JWT", for: purpose) == nil)
        }
        let published = try await nodes[1].published().keys.compactMap(\.keyID)
        #expect(published.count == 2 && sets.first.map { Set(published).isDisjoint(with: $0) } == true)
        await #expect(throws: EngineError.self) {
            try await nodes[0].sign(JSONObject(), type: "JWT", for: .gatewayIdentity, with: .rs256)
        }
    }

    @Test("Under another master key, the keys do not open, and no new one takes their place")
    func otherMasterKey() async throws {
        let fixture = try await ProviderFixture()
        _ = try await fixture.grants.keys.published()
        let context = EngineContext(
            database: fixture.database, clock: fixture.clock, random: SystemRandom(),
            masterKey: try MasterKey(Secret(bytes: SystemRandom().bytes(32))), logger: fixture.context.logger)
        await #expect(throws: EngineError.self) { try await ServerKeys(context).published() }
        #expect(try await fixture.count("server_keys") == 2)
    }

    @Test("A public half that somebody exchanged in the database is noticed")
    func exchangedPublicHalf() async throws {
        let fixture = try await ProviderFixture()
        let keyID = try #require(try await fixture.grants.keys.published().keys.first?.keyID)
        let stranger = try SoftwareSigningKey.generate(.es256)
        let jwk = try JWK(publicKeyInfo: stranger.publicKeyInfo, keyID: keyID, algorithm: .es256, use: "sig")
        _ = try await fixture.database.run(
            SQLStatement(
                "UPDATE server_keys SET public_jwk = \(jwk.json.serialized()) WHERE kid = \(keyID)",
                expecting: .exactly(1)))
        await #expect(throws: StoreError(.corrupt, "")) { try await ServerKeys(fixture.context).published() }
    }

    @Test("Tokens may not outlive the published keys")
    func lifetimes() async throws {
        let fixture = try await ProviderFixture()
        var client = ProviderFixture.bank
        client.accessTokenLifetime = 3601
        #expect(throws: EngineError.self) {
            try OAuthProvider(
                fixture.context, keys: ServerKeys(fixture.context, retention: 3600),
                configuration: OAuthProviderConfiguration(
                    realm: "/alpha", issuer: "https://a.example", clients: [client]))
        }
    }
}
