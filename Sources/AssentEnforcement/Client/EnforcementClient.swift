public import AssentCore
import Foundation
import HTTPTypes
public import Logging

/// Asks Assent's engine, over the network, what it says of the requests that a service or a gateway elsewhere got, on
/// Assent's own wire (docs/enforcement-wire.md): it takes sessions, access tokens and their proofs. AM has no such
/// wire; ``PolicyClient`` is for that.
///
/// ```swift
/// let server = try PolicyServer("https://am.bank.example/am", realm: "/alpha")
/// let account = ClientAccount(server, clientID: "payments", secret: secret, transport: transport)
/// let engine = EnforcementClient(server, credentials: account, transport: transport)
/// ```
///
/// It keeps nothing, and where it throws, nothing is allowed.
public struct EnforcementClient: Sendable {
    /// The server, and the realm that decides.
    public let server: PolicyServer

    /// Bounds of each call.
    public var limits = HTTPLimits(
        connect: .seconds(5), read: .seconds(10), total: .seconds(10), replyBytes: 256 << 10)

    /// What is logged: which decisions failed and why, never a credential.
    public let logger: Logger

    package let clock: any WallClock
    package let random: any RandomSource
    private let credentials: any EnforcementCredentials
    private let transport: any HTTPTransport

    /// The two calls but for what is in them, or why there are none.
    private let decision: Result<HTTPCall, EnforcementError>
    private let outcome: Result<HTTPCall, EnforcementError>

    /// Seconds for a question, however often it is sent: fewer than the engine repeats an answer to the same attempt.
    private static let patience: TimeInterval = 25

    /// A client.
    ///
    /// - Parameters:
    ///   - server: the server, and the realm that decides.
    ///   - credentials: access tokens of a client of a group of the server's `enforcement:`.
    ///   - transport: carries the questions; it verifies the server.
    ///   - clock: tells how long a question has taken.
    ///   - random: names the questions.
    ///   - logger: where failures go.
    public init(
        _ server: PolicyServer, credentials: any EnforcementCredentials, transport: any HTTPTransport,
        clock: any WallClock = SystemClock(), random: any RandomSource = SystemRandom(),
        logger: Logger = Logger(label: "assent.enforcement", factory: { _ in SwiftLogNoOpLogHandler() })
    ) {
        self.server = server
        self.credentials = credentials
        self.transport = transport
        self.clock = clock
        self.random = random
        self.logger = logger
        decision = Self.call(server.enforcement("decide"))
        outcome = Self.call(server.enforcement("outcome"))
    }

    private static func call(_ url: String) -> Result<HTTPCall, EnforcementError> {
        let fields: HTTPFields = [.accept: "application/json", .contentType: "application/json"]
        do throws(WireError) {
            return .success(try HTTPCall(.post, url: url, headerFields: fields))
        } catch {
            return .failure(
                EnforcementError(.invalidConfiguration, "The engine's URL cannot be used: \(error.detail)."))
        }
    }

    /// What the engine says of a request, and whether it was asked twice. A question whose reply is lost is asked once
    /// more with the same attempt: the engine gives the same answer then, so that a lost reply spends nothing.
    ///
    /// The first question may still be on its way, or have taken its transaction before something else ended what let
    /// it through. So a refusal of the second one says nothing of that transaction.
    ///
    /// Without an answer nothing is allowed. The error is `outcomeUnknown` when the first reply was lost and the second
    /// question was not answered either, whatever hindered that.
    package func decide(
        _ question: EnforcementQuestion
    ) async -> (answer: Result<EnforcementAnswer, EnforcementError>, isRepeated: Bool) {
        let content = question.json.serializedBytes()
        let deadline = clock.now.addingTimeInterval(Self.patience)
        // Beside a transaction the connection is looked at first: after a lost reply nobody knows whether it was taken.
        let first = await answer(
            content, attempt: question.attempt, until: deadline, isReplaced: question.transaction == nil)
        // It was lost, or the engine does not know what its database did: the same question tells.
        guard case .failure(let error) = first, error.code == .outcomeUnknown else { return (first, false) }
        let second = await answer(content, attempt: question.attempt, until: deadline)
        // Its content is wrong, or the engine's answer is. Anything else says nothing of the first question.
        guard case .failure(let error) = second, error.code != .refused, error.code != .malformedReply else {
            return (second, true)
        }
        return (.failure(EnforcementError(.outcomeUnknown, error.detail)), true)
    }

    /// Asks once. With `isReplaced` the question is asked again where a kept connection turns out to have ended.
    private func answer(
        _ content: [UInt8], attempt: String, until deadline: Date, isReplaced: Bool = false
    ) async -> Result<EnforcementAnswer, EnforcementError> {
        do throws(EnforcementError) {
            let reply = try await send(content, by: decision, until: deadline, isReplaced: isReplaced)
            guard reply.status == 200, let json = reply.json else { throw refusal(reply) }
            return .success(try Self.read(json, to: attempt))
        } catch {
            return .failure(error)
        }
    }

    private static func read(_ json: JSONValue, to attempt: String) throws(EnforcementError) -> EnforcementAnswer {
        do throws(WireError) {
            return try EnforcementAnswer(json: json, to: attempt)
        } catch {
            throw EnforcementError(.malformedReply, "The engine's answer cannot be used: \(error.detail).")
        }
    }

    /// Tells the engine what became of a request whose transaction was taken. It may be said again.
    ///
    /// - Throws: ``EnforcementError``; what is `refused` once is refused again.
    package func report(_ statement: OutcomeStatement) async throws(EnforcementError) {
        let reply = try await send(statement.json.serializedBytes(), by: outcome)
        guard !(200..<300).contains(reply.status) else { return }
        // A transaction that the attempt has not taken, or that is there no more.
        guard reply.status != 404 else {
            throw EnforcementError(.refused, "The engine knows no such transaction of this attempt.", status: 404)
        }
        throw refusal(reply)
    }

    private struct Reply {
        let status: Int
        let json: JSONValue?

        /// Whether the engine says that nobody knows what it has done.
        var saysUnknown: Bool {
            status == 503 && json?["code"]?.string == EnforcementError.Code.outcomeUnknown.rawValue
        }
    }

    /// Sends with an access token; once more with another one, where the engine does not take this one: then it has
    /// done nothing.
    private func send(
        _ content: [UInt8], by call: Result<HTTPCall, EnforcementError>, until deadline: Date? = nil,
        isReplaced: Bool = false
    ) async throws(EnforcementError) -> Reply {
        var call = try call.get()
        call.body = HTTPBody(content)
        call.isReplacedAbove = isReplaced
        let token = try await credentials.session(replacing: nil)
        let reply = try await send(call, token, deadline)
        guard reply.status == 401 else { return reply }
        return try await send(call, try await credentials.session(replacing: token), deadline)
    }

    private func send(
        _ whole: HTTPCall, _ token: Secret, _ deadline: Date?
    ) async throws(EnforcementError) -> Reply {
        var call = whole
        call.limits = limits
        if let deadline {
            let left = Duration.seconds(deadline.timeIntervalSince(clock.now))
            guard left > .zero else {
                throw EnforcementError(.unavailable, "The engine took too long to accept the access token.")
            }
            call.limits.total = min(limits.total ?? left, left)
        }
        call.request.headerFields[.authorization] = "Bearer \(token.reveal())"
        do {
            let reply = try await transport.send(call)
            let bytes = try await reply.body.collect(upTo: limits.replyBytes)
            return Reply(
                status: reply.status, json: try? JSONValue.parse(bytes, limits: JSONLimits(bytes: limits.replyBytes)))
        } catch let error as HTTPTransportError where !error.mayHaveHadEffect {
            throw EnforcementError(.unavailable, "The engine cannot be reached: \(error.detail)")
        } catch {
            let why = (error as? HTTPTransportError)?.detail ?? "\(type(of: error))"
            throw EnforcementError(.outcomeUnknown, "The engine gave no answer: \(why)")
        }
    }

    private func refusal(_ reply: Reply) -> EnforcementError {
        if reply.saysUnknown {
            return EnforcementError(.outcomeUnknown, "The engine does not know whether a transaction was taken.")
        }
        return switch reply.status {
        case 400, 409, 413, 415:
            EnforcementError(.refused, "The engine refuses what it was asked.", status: reply.status)
        case 401: EnforcementError(.notSignedIn, "The engine does not accept the client's access token.")
        case 403: EnforcementError(.forbidden, "The engine does not let the client ask that.")
        case 404: EnforcementError(.unknownPolicySet, "The engine does not know the realm, or has no such group.")
        case 200..<300: EnforcementError(.malformedReply, "The engine's answer is not JSON.")
        // What stands before the engine says so too when it has lost the engine's answer.
        case 500...502, 504...599:
            EnforcementError(.outcomeUnknown, "The engine gave no answer: status \(reply.status).")
        default: EnforcementError(.unavailable, "The engine answered with status \(reply.status).")
        }
    }
}
