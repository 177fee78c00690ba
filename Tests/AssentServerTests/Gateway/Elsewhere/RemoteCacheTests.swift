import AssentCore
import AssentEnforcement
import AssentTesting
import Foundation
import Testing

@testable import AssentServer

@Suite("A gateway elsewhere keeps decisions where its route says so, and nowhere else")
struct RemoteCacheTests {
    @Test("Within cacheSeconds the same safe request is no question; a revocation is that late, and no later")
    func kept() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let mine = ServerFixture.session(session)
            let before = alone.relay.count("decide")
            for _ in 0..<5 { #expect(try await alone.get("/files/kept", mine).status == 200) }
            #expect(alone.relay.count("decide") == before + 1)
            #expect(alone.upstream.requests.count == 5)
            for _ in 0..<2 { #expect(try await alone.get("/files/other", mine).status == 200) }
            #expect(alone.relay.count("decide") == before + 3)
            _ = try await alone.engine.send("POST", alone.engine.json("sessions?_action=logout"), mine)
            #expect(try await alone.get("/files/other", mine).status == 401)
            #expect(try await alone.get("/files/kept", mine).status == 200)
            alone.engine.clock.advance(by: 31)
            #expect(try await alone.get("/files/kept", mine).status == 401)
            #expect(try await alone.get("/files/kept", mine).status == 401)
        }
    }

    @Test("What differs in credential, resource or method is a question of its own, and so is what is not safe")
    func differs() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let mine = ServerFixture.session(session)
            let other = ServerFixture.session(try await alone.engine.session("ben"))
            #expect(try await alone.get("/files/kept", mine).status == 200)
            func questions(_ body: () async throws -> Int) async throws -> (status: Int, count: Int) {
                let before = alone.relay.count("decide")
                let status = try await body()
                return (status, alone.relay.count("decide") - before)
            }
            let cases: [(String, String, [(String, String)], Int)] = [
                ("GET", "/files/kept", mine, 0), ("GET", "/files/kept", other, 1),
                ("GET", "/files/kept?a=1", mine, 1), ("GET", "/files/kept/b", mine, 1),
                ("HEAD", "/files/kept", mine, 1), ("GET", "/files/kept", [], 1), ("GET", "/files/kept", [], 1),
                ("POST", "/files/kept", mine, 1), ("POST", "/files/kept", mine, 1),
                ("DELETE", "/files/kept", mine, 1), ("DELETE", "/files/kept", mine, 1),
                ("GET", "/files/kept", mine + [("X-TxID", "x")], 1),
            ]
            for (method, target, fields, count) in cases {
                let found = try await questions { try await alone.send(method, target, fields).status }
                #expect(found.count == count, "\(method) \(target)")
            }
            #expect(alone.upstream.requests.last { $0.line.hasPrefix("GET") }?.values("X-Remote-User") == ["ana"])
        }
    }

    @Test("A request is kept by its realm and its proofs too, and not by the name of its question")
    func proofs() throws {
        let clock = ManualClock()
        let cache = DecisionCache(clock: clock, random: SystemRandom())
        var question = Self.question("GET")
        let plain = cache.key(of: question, realm: "/alpha")
        question.attempt = "another"
        #expect(cache.key(of: question, realm: "/alpha") == plain)
        #expect(cache.key(of: question, realm: "/beta") != plain)
        question.credentials.proofs = ["a"]
        #expect(cache.key(of: question, realm: "/alpha") != plain)
    }

    @Test("The memory is bounded, the oldest grant goes first, and nothing outlives its seconds")
    func bounded() throws {
        let clock = ManualClock()
        let cache = DecisionCache(capacity: 3, clock: clock, random: SystemRandom())
        let keys = (0..<1000).map {
            cache.key(of: Self.question("GET", "https://edge.example/\($0)"), realm: "/alpha")
        }
        for key in keys { cache.keep(.init(), key, seconds: 10, from: clock.now) }
        #expect(cache.count == 3)
        #expect(keys.filter { cache.grant($0) != nil } == Array(keys.suffix(3)))
        clock.advance(by: 9)
        #expect(keys.contains { cache.grant($0) != nil })
        clock.advance(by: 1)
        #expect(!keys.contains { cache.grant($0) != nil })
        // An answer that took as long as it may be kept is not kept.
        cache.keep(.init(), keys[0], seconds: 10, from: clock.now.addingTimeInterval(-10))
        #expect(cache.grant(keys[0]) == nil)
        let other = DecisionCache(clock: clock, random: SystemRandom())
        let question = Self.question("GET")
        #expect(other.key(of: question, realm: "/alpha") != cache.key(of: question, realm: "/alpha"))
    }

    @Test("A clock that is set back gives no grant a longer life, and none a second one")
    func setBack() throws {
        let clock = ManualClock()
        let cache = DecisionCache(clock: clock, random: SystemRandom())
        let key = cache.key(of: Self.question("GET"), realm: "/alpha")
        cache.keep(.init(), key, seconds: 10, from: clock.now)
        #expect(cache.grant(key) != nil)
        clock.advance(by: -3600)
        #expect(cache.grant(key) == nil && cache.count == 0)
        clock.advance(by: 3600)
        #expect(cache.grant(key) == nil)
        // One that was asked for before and comes afterwards.
        let asked = clock.now
        clock.advance(by: -3600)
        cache.keep(.init(), key, seconds: 10, from: asked)
        for seconds in [0.0, 3600] {
            clock.advance(by: seconds)
            #expect(cache.grant(key) == nil)
        }
        cache.keep(.init(), key, seconds: 10, from: clock.now)
        #expect(cache.grant(key) != nil)
    }

    private static func question(_ method: String, _ url: String = "https://edge.example/a") -> EnforcementQuestion {
        var credentials = EnforcementQuestion.Credentials(proofURL: url)
        credentials.session = Secret("session")
        return EnforcementQuestion(
            policySet: "bank", resource: url, method: method, credentials: credentials, requirement: .init(),
            attempt: "attempt")
    }
}
