import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Journeys and sessions that belong to a key, at two nodes")
struct SessionKeyTests {
    /// A journey fixture with a second node on its database, and a client's keys.
    private struct World {
        let fixture: JourneyFixture
        let nodes: [Authentication]
        let owner: SoftwareSigningKey
        let thief: SoftwareSigningKey

        static let url = "https://am.example/am/json/realms/root/realms/alpha/authenticate"

        init() async throws {
            fixture = try await JourneyFixture()
            try await SenderProofs.begin(fixture.context)
            let second = try JourneyFixture.authentication(
                fixture.context, fixture.passwords, fixture.oneTimePasswords, fixture.transactions)
            nodes = [fixture.authentication, second]
            owner = try SoftwareSigningKey.generate(.es256)
            thief = try SoftwareSigningKey.generate(.es256)
        }

        var thumbprint: String { get throws { try JWK(publicKeyInfo: owner.publicKeyInfo).thumbprint } }

        func proof(by key: SoftwareSigningKey?, of token: Secret? = nil) async throws -> PresentedProof {
            var fields: [String] = []
            if let key {
                let nonce = SenderProofs(fixture.context).nonce(of: .authorizationServer)
                fields = [
                    try await DPoPProof.make(
                        method: "POST", uri: Self.url, accessToken: token, nonce: nonce, key: key,
                        clock: fixture.clock)
                ]
            }
            return PresentedProof(fields: fields, method: "POST", url: Self.url, server: .authorizationServer)
        }

        func send(
            _ answer: PageAnswer? = nil, to node: Authentication, session: Secret? = nil, forceAuth: Bool = false,
            replaces: Bool = false, _ proof: PresentedProof
        ) async throws -> AuthenticateReply {
            var request = AuthenticateRequest(
                realm: "/alpha", authIndexType: "service", authIndexValue: "Password", forceAuth: forceAuth,
                sessionToken: session, answer: answer)
            request.replacesSession = replaces
            request.proof = proof
            return try await node.authenticate(request)
        }

        static let answers: [JSONValue?] = [.string("ana"), .string(JourneyFixture.password)]

        func signIn(by key: SoftwareSigningKey?) async throws -> AuthenticateSuccess {
            let page = try Page(await send(to: nodes[0], proof(by: key)))
            return try await send(page.answered(Self.answers), to: nodes[0], proof(by: key)).success()
        }

        func key(of token: Secret?) async throws -> String? {
            let token = try #require(token)
            let live = try await fixture.sessions.live(token: token)
            return try #require(live).sender?.keyThumbprint
        }
    }

    private static func refused(_ body: () async throws -> AuthenticateReply) async throws -> SenderProofRefusal.Code? {
        do {
            _ = try await body()
            return nil
        } catch let refusal as SenderProofRefusal {
            return refusal.code
        }
    }

    @Test("A step is answered with the journey's key alone, at each node, and its reply is repeated for it alone")
    func journey() async throws {
        let world = try await World()
        for (first, second) in [(0, 1), (1, 0)] {
            let page = try Page(await world.send(to: world.nodes[first], world.proof(by: world.owner)))
            let answer = page.answered(World.answers)
            for round in 0..<2 {
                for node in world.nodes {
                    for key in [nil, world.thief] {
                        let proof = try await world.proof(by: key)
                        #expect(
                            try await Self.refused { try await world.send(answer, to: node, proof) } == .invalidProof)
                    }
                }
                let node = world.nodes[round == 0 ? second : first]
                let reply = try await world.send(answer, to: node, world.proof(by: world.owner)).success()
                #expect(try reply.keyThumbprint == world.thumbprint)
                #expect(try await world.key(of: reply.token) == world.thumbprint)
            }
        }
        #expect(try await world.fixture.count("sessions") == 2)
    }

    @Test("A proof answers one step once")
    func replay() async throws {
        let world = try await World()
        let begun = try await world.proof(by: world.owner)
        let page = try Page(await world.send(to: world.nodes[0], begun))
        let answer = page.answered(World.answers)
        #expect(try await Self.refused { try await world.send(answer, to: world.nodes[0], begun) } == .invalidProof)
        let proof = try await world.proof(by: world.owner)
        _ = try await world.send(answer, to: world.nodes[0], proof).success()
        #expect(try await Self.refused { try await world.send(answer, to: world.nodes[0], proof) } == .invalidProof)
    }

    @Test("Nothing is remembered of a proof for a step that has expired or that nobody knows")
    func expiredStep() async throws {
        let world = try await World()
        let page = try Page(await world.send(to: world.nodes[0], world.proof(by: world.owner)))
        let answer = page.answered(World.answers)
        world.fixture.clock.advance(by: 3600)
        for isKnown in [true, false] {
            if !isKnown {
                _ = try await world.fixture.database.run(SQLStatement("DELETE FROM journey_steps"))
            }
            let proof = try await world.proof(by: world.owner)
            // A proof that was spent would be refused the second time.
            for _ in 0..<2 {
                await #expect(throws: EngineError(.stepExpired)) {
                    try await world.send(answer, to: world.nodes[0], proof)
                }
            }
        }
    }

    @Test("A step takes a limited number of proofs in a minute, of its key alone: others do not use it up")
    func provedTooOften() async throws {
        let world = try await World()
        let page = try Page(await world.send(to: world.nodes[0], world.proof(by: world.owner)))
        let answer = page.answered(World.answers)
        for _ in 0...Authentication.proofsPerMinute {
            let proof = try await world.proof(by: world.thief)
            #expect(try await Self.refused { try await world.send(answer, to: world.nodes[1], proof) } == .invalidProof)
        }
        for round in 0..<Authentication.proofsPerMinute {
            let node = world.nodes[Int(round % 2)]
            _ = try await world.send(answer, to: node, world.proof(by: world.owner)).success()
        }
        for node in world.nodes {
            let proof = try await world.proof(by: world.owner)
            await #expect {
                try await world.send(answer, to: node, proof)
            } throws: { ($0 as? EngineError)?.code == .tooManyRequests }
        }
        let other = try Page(await world.send(to: world.nodes[0], world.proof(by: world.owner)))
        _ = try await world.send(other.answered(World.answers), to: world.nodes[0], world.proof(by: world.owner))
            .success()
    }

    @Test("The key in an authId cannot be changed, and cannot be left out")
    func changedAuthID() async throws {
        let world = try await World()
        let page = try Page(await world.send(to: world.nodes[0], world.proof(by: world.owner)))
        let own = try JWK(publicKeyInfo: world.thief.publicKeyInfo).thumbprint
        let parts = page.authID.split(separator: ".").map(String.init)
        let payload = try #require(Base64URL.decode(parts[1]))
        var claims = try #require(try JSONValue.parse(payload).object)
        #expect(try claims["jkt"]?.string == world.thumbprint)
        for value in [JSONValue.string(own), nil, .null, .array([.string(own)])] {
            claims["jkt"] = value
            let payload = Base64URL.encode(JSONValue.object(claims).serializedBytes())
            var answer = page.answered(World.answers)
            answer.authID = "\(parts[0]).\(payload).\(parts[2])"
            let proof = try await world.proof(by: world.thief)
            let sent = answer
            await #expect(throws: EngineError(.authIDInvalid)) { try await world.send(sent, to: world.nodes[0], proof) }
        }
        let answer = page.answered(World.answers)
        _ = try await world.send(answer, to: world.nodes[0], world.proof(by: world.owner)).success()
    }

    @Test("A session's key is kept by a step-up and by nothing else: a new sign-in has the key of its own proof")
    func stepUp() async throws {
        let world = try await World()
        let bound = try #require(try await world.signIn(by: world.owner).token)
        for (token, key) in [(nil, world.owner), (bound, world.thief)] {
            let proof = try await world.proof(by: key, of: token)
            let code = try await Self.refused {
                try await world.send(to: world.nodes[1], session: bound, forceAuth: true, proof)
            }
            #expect(code == .invalidProof)
        }
        let page = try Page(
            await world.send(
                to: world.nodes[1], session: bound, forceAuth: true, world.proof(by: world.owner, of: bound)))
        let raised = try await world.send(
            page.answered(World.answers), to: world.nodes[0], session: bound, world.proof(by: world.owner, of: bound)
        ).success()
        #expect(try await world.key(of: raised.token) == world.thumbprint)
        #expect(try await world.fixture.sessions.live(token: bound) == nil)

        for (replaces, key) in [(false, nil), (true, try world.thumbprint)] {
            let plain = try #require(try await world.signIn(by: nil).token)
            let page = try Page(
                await world.send(
                    to: world.nodes[0], session: plain, forceAuth: true, replaces: replaces,
                    world.proof(by: world.owner)))
            let new = try await world.send(
                page.answered(World.answers), to: world.nodes[1], session: plain, world.proof(by: world.owner)
            ).success()
            #expect(try await world.key(of: new.token) == key && new.keyThumbprint == key)
            #expect(try await world.fixture.sessions.live(token: plain) == nil)
        }
    }

    @Test("A session that is enough is given to its key alone")
    func existing() async throws {
        let world = try await World()
        let bound = try #require(try await world.signIn(by: world.owner).token)
        for key in [nil, world.thief] {
            let proof = try await world.proof(by: key, of: bound)
            #expect(
                try await Self.refused { try await world.send(to: world.nodes[0], session: bound, proof) }
                    == .invalidProof)
        }
        let same = try await world.send(
            to: world.nodes[0], session: bound, world.proof(by: world.owner, of: bound)
        ).success()
        #expect(try same.token == bound && same.keyThumbprint == world.thumbprint && !same.isNewSession)
    }
}
