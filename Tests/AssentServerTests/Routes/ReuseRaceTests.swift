import AssentCore
import AssentStore
import AssentTesting
import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import TestSupport
import Testing

@testable import AssentServer

/// 200 requests at one moment, each on a connection of its own, with TLS and a database on a disk.
@Suite("Codes and refresh tokens that come twice", .serialized)
struct ReuseRaceTests {
    private static let count = 200

    /// Sends the forms to the token endpoint, all at once.
    private func race(_ fixture: ServerFixture, _ form: @Sendable @escaping (Int) -> [(String, String)]) async throws
        -> [Answer]
    {
        let client = HTTPClient.forTests(connections: Self.count)
        let url = fixture.oauth("access_token")
        do {
            let answers = try await withThrowingTaskGroup(of: Answer.self) { group in
                for index in 0..<Self.count {
                    group.addTask {
                        var request = HTTPClientRequest(url: url)
                        request.method = .POST
                        request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
                        request.body = .bytes(ByteBuffer(string: ServerFixture.query(form(index))))
                        let reply = try await client.execute(request, timeout: .seconds(Int64(Patience.seconds)))
                        let bytes = try await reply.body.collect(upTo: 1 << 20)
                        return Answer(
                            status: Int(reply.status.code), fields: reply.headers, bytes: Array(bytes.readableBytesView)
                        )
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            try await client.shutdown()
            return answers
        } catch {
            try await client.shutdown()
            throw error
        }
    }

    private func code(_ fixture: ServerFixture) async throws -> (code: String, verifier: String) {
        let verifier = SystemRandom().token()
        let redirect = try await fixture.authorize(
            session: try await fixture.session(),
            [("code_challenge", Base64URL.encode(SHA2.sha256(verifier.utf8)))])
        return (try #require(redirect.parameter("code")), verifier)
    }

    /// How many of the answers are tokens; all others must be `invalid_grant`.
    private func successes(_ answers: [Answer], _ location: SourceLocation = #_sourceLocation) -> [Answer] {
        #expect(answers.count == Self.count, sourceLocation: location)
        for answer in answers where answer.status != 200 {
            #expect(answer.status == 400 && answer.error == "invalid_grant", "\(answer.text)", sourceLocation: location)
        }
        return answers.filter { $0.status == 200 }
    }

    /// Nothing that was handed out counts any more.
    private func expectAllDead(
        _ fixture: ServerFixture, _ answers: [Answer], _ location: SourceLocation = #_sourceLocation
    ) async throws {
        for answer in answers {
            let access = try #require(answer.json["access_token"]?.string)
            let userInfo = try await fixture.send("GET", fixture.oauth("userinfo"), ServerFixture.bearer(access))
            #expect(userInfo.status == 401, sourceLocation: location)
            let token = try #require(answer.json["refresh_token"]?.string)
            #expect(try await fixture.refresh(token).error == "invalid_grant", sourceLocation: location)
        }
        #expect(try await live(fixture) == 0, sourceLocation: location)
    }

    /// Families of tokens that count: grants that are not revoked and have an unused refresh token.
    private func live(_ fixture: ServerFixture) async throws -> Int64 {
        try #require(
            try await fixture.rows(
                """
                SELECT count(DISTINCT g.id) AS n FROM grants g JOIN refresh_tokens r ON r.grant_id = g.id
                WHERE g.revoked_at IS NULL AND r.used_at IS NULL
                """
            ).first
        ).integer("n")
    }

    private func ends(_ fixture: ServerFixture, reason: String) async throws -> Int64 {
        try #require(
            try await fixture.rows("SELECT count(*) AS n FROM audit WHERE reason = \(reason)").first
        ).integer("n")
    }

    @Test("One code, 200 times at once: one family at most, and in the end none")
    func code() async throws {
        try await ServerFixture.run { fixture in
            let (code, verifier) = try await code(fixture)
            let answers = successes(
                try await race(fixture) { _ in
                    [
                        ("grant_type", "authorization_code"), ("code", code), ("client_id", "bank-app"),
                        ("redirect_uri", "http://127.0.0.1/callback"), ("code_verifier", verifier),
                    ]
                })
            #expect(answers.count <= 1)
            try await expectAllDead(fixture, answers)
            #expect(try await fixture.count("refresh_tokens") == Int64(answers.count))
            #expect(try await ends(fixture, reason: "code_reuse") == 1)
        }
    }

    @Test("One refresh token, 200 times at once by one attempt: one successor for all, and the family lives")
    func sameAttempt() async throws {
        try await ServerFixture.run { fixture in
            let first = try await fixture.tokens(session: try await fixture.session())
            let attempt = SystemRandom().token()
            let answers = successes(
                try await race(fixture) { _ in ServerFixture.refreshForm(first.refresh, attempt: attempt) })
            #expect(answers.count == Self.count)
            #expect(Set(answers.compactMap { $0.json["refresh_token"]?.string }).count == 1)
            #expect(try await live(fixture) == 1)
            #expect(try await fixture.count("refresh_tokens") == 2)
            #expect(try await ends(fixture, reason: "refresh_reuse") == 0)
            let successor = try #require(answers.first?.json["refresh_token"]?.string)
            #expect(try await fixture.refresh(successor).status == 200)
        }
    }

    @Test(
        "One refresh token, 200 times at once by different attempts or by none: in the end nothing lives",
        arguments: [true, false])
    func differentAttempts(hasAttempts: Bool) async throws {
        try await ServerFixture.run { fixture in
            let first = try await fixture.tokens(session: try await fixture.session())
            let answers = successes(
                try await race(fixture) {
                    ServerFixture.refreshForm(first.refresh, attempt: hasAttempts ? "attempt-0123456789-\($0)" : nil)
                })
            #expect(answers.count == 1)
            try await expectAllDead(fixture, answers)
            #expect(try await ends(fixture, reason: "refresh_reuse") == 1)
        }
    }

    @Test("One refresh token, by its client and by another one at once: one family at most, and the other gets nothing")
    func otherClient() async throws {
        try await ServerFixture.run { fixture in
            let first = try await fixture.tokens(session: try await fixture.session())
            let attempt = SystemRandom().token()
            let answers = successes(
                try await race(fixture) {
                    ServerFixture.refreshForm(
                        first.refresh, attempt: attempt, client: $0.isMultiple(of: 2) ? "bank-app" : "asking-app")
                })
            #expect(answers.count <= Self.count / 2)
            #expect(Set(answers.compactMap { $0.json["refresh_token"]?.string }).count <= 1)
            #expect(try await live(fixture) <= 1)
            // Once it is spent, another client that holds it ends the family.
            _ = try await fixture.refresh(first.refresh)
            try await expectAllDead(fixture, answers)
            #expect(try await ends(fixture, reason: "refresh_reuse") == 1)
        }
    }

    @Test("After the grace the same attempt is a reuse too: 200 at once end the family")
    func afterGrace() async throws {
        try await ServerFixture.run { fixture in
            let first = try await fixture.tokens(session: try await fixture.session())
            let attempt = SystemRandom().token()
            let second = try await fixture.refresh(first.refresh, attempt: attempt)
            #expect(second.status == 200)
            fixture.clock.advance(by: 59)
            let again = try await fixture.refresh(first.refresh, attempt: attempt)
            #expect(again.json["refresh_token"] == second.json["refresh_token"])
            fixture.clock.advance(by: 1)
            let answers = successes(
                try await race(fixture) { _ in ServerFixture.refreshForm(first.refresh, attempt: attempt) })
            #expect(answers.isEmpty)
            try await expectAllDead(fixture, [second, again])
            #expect(try await ends(fixture, reason: "refresh_reuse") == 1)
        }
    }

    @Test("A successor that has been used is not handed out again, not even to its own attempt within the grace")
    func usedSuccessor() async throws {
        try await ServerFixture.run { fixture in
            let first = try await fixture.tokens(session: try await fixture.session())
            let attempt = SystemRandom().token()
            let second = try await fixture.refresh(first.refresh, attempt: attempt)
            let third = try await fixture.refresh(try #require(second.json["refresh_token"]?.string))
            #expect(third.status == 200)
            let answers = successes(
                try await race(fixture) { _ in ServerFixture.refreshForm(first.refresh, attempt: attempt) })
            #expect(answers.isEmpty)
            try await expectAllDead(fixture, [second, third])
        }
    }
}
