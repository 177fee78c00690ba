import AssentCore
import AssentTesting
import HTTPTypes
import Testing

@testable import AssentJourney

/// Notes what calls are proved for, and fails as it is told.
private final class Prover: SessionProver {
    let purposes = Locked<[ProofPurpose]>([])
    let failure: SessionProofError?

    init(_ failure: SessionProofError? = nil) { self.failure = failure }

    @concurrent func send(
        _ call: HTTPCall, for purpose: ProofPurpose, over transport: any HTTPTransport
    ) async throws -> HTTPReply {
        if let failure { throw failure }
        purposes.withLock { $0.append(purpose) }
        var proved = call
        proved.request.headerFields[.dpop] = "proof"
        return try await transport.send(proved)
    }
}

@Suite("Journeys whose requests are proved") struct ProvedJourneyTests {
    private static let bound = Session(token: Secret("B"), realm: "/alpha", keyThumbprint: "k")
    private static let refusal = HTTPReply.json(
        401, ["code": 401, "message": "The proof was used before."],
        headers: [.wwwAuthenticate: #"DPoP error="invalid_dpop_proof",algs="ES256""#])

    private func client(_ replies: [HTTPReply], _ prover: Prover) throws -> JourneyClient {
        var client = try AssentJourneyTests.client(script(replies))
        client.prover = prover
        return client
    }

    @Test("Every request is proved for the session that it carries, and the reply says to which key a session belongs")
    func proved() async throws {
        let success = HTTPReply.json(200, ["tokenId": "T", "realm": "/alpha", "cnf": ["jkt": "k"]])
        for session in [nil, Self.bound] {
            let prover = Prover()
            let client = try client([step([name]), success], prover)
            var next = try #require(await client.start("Login", session: session).step)
            next[NameCallback.self]?.name = "ana"
            let given = try #require(await client.next(next).session)
            #expect(given.keyThumbprint == "k")
            #expect(prover.purposes.withLock { $0 } == [.journey(session), .journey(session)])
        }
    }

    @Test("A question about a session and its end are proved for that session, not for a journey")
    func sessions() async throws {
        let prover = Prover()
        let client = try client([.json(200, [:]), .json(200, [:])], prover)
        #expect(try await client.isAccepted(Self.bound))
        try await client.signOut(Self.bound)
        #expect(prover.purposes.withLock { $0 } == [.session(Self.bound), .session(Self.bound)])
    }

    @Test("AM's reply names no key")
    func unbound() async throws {
        let client = try client([success], Prover())
        let session = try #require(await client.start("Login").session)
        #expect(session.keyThumbprint == nil && session.keyName == nil)
    }

    @Test("A key that is lost, or not there now, is an error of its own")
    func failures() async throws {
        for (isLost, code) in [(true, JourneyFailure.Code.keyLost), (false, .keyUnavailable)] {
            let prover = Prover(SessionProofError(isLost: isLost, detail: "Why.", suggestion: "Do it."))
            let client = try client([success], prover)
            let failure = await client.start("Login").failure
            #expect(failure?.code == code && failure?.detail == "Why." && failure?.suggestion == "Do it.")
            await #expect(throws: JourneyFailure.self) { try await client.signOut(Self.bound) }
        }
    }

    @Test("A refused proof says nothing about the session: it is neither ended nor gone")
    func refused() async throws {
        let client = try client([Self.refusal], Prover())
        for ask in [
            { _ = try await client.isAccepted(Self.bound) }, { try await client.signOut(Self.bound) },
        ] as [@Sendable () async throws -> Void] {
            let failure = await #expect(throws: JourneyFailure.self) { try await ask() }
            #expect(failure?.code == .proofRefused)
        }
        // AM's own words about a session that has ended.
        let ended = try self.client([.json(401, ["code": 401, "message": "Access Denied"])], Prover())
        #expect(try await !ended.isAccepted(Self.bound))
    }

    @Test("A refused proof says nothing about what was typed: no journey has failed, and the step may be sent again")
    func refusedStep() async throws {
        let refusing = try self.client([Self.refusal], Prover())
        let unbegun = await refusing.start("Login", session: Self.bound)
        #expect(unbegun.failure?.code == .proofRefused && unbegun.error == nil)
        let client = try client([step([name]), Self.refusal, success], Prover())
        var next = try #require(await client.start("Login").step)
        next[NameCallback.self]?.name = "ana"
        let refused = await client.next(next)
        #expect(refused.failure?.code == .proofRefused && refused.failure?.status == 401)
        #expect(await client.next(next).session != nil)
    }

    @Test("A 401 that is not the server's JSON ends no session", arguments: ["", "<html>Proxy sign-in</html>", "[]"])
    func between(body: String) async throws {
        let client = try client(
            [HTTPReply(HTTPResponse(status: .unauthorized), body: HTTPBody(Array(body.utf8)))], Prover())
        let failure = await #expect(throws: JourneyFailure.self) { try await client.isAccepted(Self.bound) }
        #expect(failure?.code == .malformedReply && failure?.status == 401)
    }
}
