import AssentCore
import AssentEnforcement
import AssentJOSE
import AssentTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentServer

@Suite("How long a gateway elsewhere asks one question")
struct QuestionDeadlineTests {
    /// How the engine answers a call.
    enum Turn: Sendable { case nonce, lost, stale }

    /// An engine that takes six seconds for each call.
    private final class SlowEngine: HTTPTransport {
        /// When each call began, and when it had to end, in seconds after the first.
        let calls = Locked<[(begin: TimeInterval, end: TimeInterval)]>([])
        let clock = ManualClock()
        private let start: Date
        private let turns: [Turn]

        init(_ turns: [Turn]) {
            self.turns = turns
            start = clock.now
        }

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let begin = clock.now.timeIntervalSince(start)
            let limit = TimeInterval(call.limits.total?.components.seconds ?? .max)
            let number = calls.withLock { calls in
                calls.append((begin, begin + limit))
                return calls.count
            }
            clock.advance(by: 6)
            switch turns[min(number, turns.count) - 1] {
            case .lost: throw HTTPTransportError(.connectionClosed, "Cut.", mayHaveHadEffect: true)
            case .nonce: return .json(401, [:], headers: [.dpopNonce: "nonce-\(number)"])
            case .stale: return .json(401, [:])
            }
        }
    }

    /// Gives another access token whenever it is asked.
    private struct Account: EnforcementCredentials {
        func session(replacing refused: Secret?) async throws(EnforcementError) -> Secret {
            Secret(SystemRandom().token())
        }
    }

    @Test(
        "Nonces, new access tokens and lost replies share 25 seconds",
        arguments: [
            ([Turn.nonce], EnforcementError.Code.notSignedIn, 4),
            ([.nonce, .lost], .outcomeUnknown, 3),
            ([.nonce, .lost, .nonce, .lost], .outcomeUnknown, 4),
            ([.lost, .nonce, .stale, .nonce], .outcomeUnknown, 5),
            ([.stale, .lost, .nonce, .nonce, .nonce], .outcomeUnknown, 5),
        ])
    func chain(turns: [Turn], code: EnforcementError.Code, count: Int) async throws {
        let engine = SlowEngine(turns)
        let settings = EngineSettings(
            url: "https://engine.example/am", publicURL: "https://engine.example/am", realms: [:])
        let calls = try ProvenCalls(
            engine, key: try SoftwareSigningKey.generate(.es256), to: settings, clock: engine.clock,
            random: SystemRandom())
        let client = EnforcementClient(
            try PolicyServer("https://engine.example/am", realm: "alpha"),
            credentials: Account(), transport: calls, clock: engine.clock)
        var question = EnforcementQuestion(
            policySet: "bank", resource: "https://pay.example/nods", method: "POST",
            credentials: .init(proofURL: "https://pay.example/nods"), requirement: .init(), attempt: "attempt")
        question.transaction = "t-1"
        let asked = await client.decide(question)
        guard case .failure(let error) = asked.answer else {
            Issue.record("\(asked)")
            return
        }
        #expect(error.code == code)
        let sent = engine.calls.withLock { $0 }
        #expect(sent.count == count)
        #expect(sent.allSatisfy { $0.begin < 25 && $0.end <= 25 }, "\(sent)")
    }
}
