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
        /// Of each call, whether it may go to a connection that has ended.
        let replaced = Locked<[Bool]>([])
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
            replaced.withLock { $0.append(call.isReplacedAbove) }
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
        let asked = try await Self.ask(engine, over: calls, transaction: "t-1")
        guard case .failure(let error) = asked.answer else {
            Issue.record("\(asked)")
            return
        }
        #expect(error.code == code)
        let sent = engine.calls.withLock { $0 }
        #expect(sent.count == count)
        #expect(sent.allSatisfy { $0.begin < 25 && $0.end <= 25 }, "\(sent)")
    }

    @Test("A first question without a transaction finds out by itself that its connection has ended, and no other does")
    func replaced() async throws {
        for (transaction, expected) in [(nil, [true, false]), ("t-1", [false, false])] as [(String?, [Bool])] {
            let engine = SlowEngine([.lost])
            _ = try await Self.ask(engine, over: engine, transaction: transaction)
            let flags = engine.replaced.withLock { $0 }
            #expect(flags == expected)
        }
    }

    private static func ask(
        _ engine: SlowEngine, over transport: any HTTPTransport, transaction: String?
    ) async throws -> (answer: Result<EnforcementAnswer, EnforcementError>, isRepeated: Bool) {
        let client = EnforcementClient(
            try PolicyServer("https://engine.example/am", realm: "alpha"),
            credentials: Account(), transport: transport, clock: engine.clock)
        var question = EnforcementQuestion(
            policySet: "bank", resource: "https://pay.example/nods", method: "POST",
            credentials: .init(proofURL: "https://pay.example/nods"), requirement: .init(), attempt: "attempt")
        question.transaction = transaction
        return await client.decide(question)
    }
}
