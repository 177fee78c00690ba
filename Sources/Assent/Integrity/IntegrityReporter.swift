import AssentCore
import AssentTrust
import Foundation
import HTTPTypes
import Logging

/// Tells the server what the probes have found, once, by a call of its own that no other call waits for
/// (docs/resources.md, "Reports to the server"). It carries no credential, and passes no probe.
final class IntegrityReporter: Sendable {
    /// What was found, and what was done with the calls.
    struct Finding: Sendable, Hashable {
        let kind: IntegrityKind
        let isRefused: Bool
    }

    /// How often it is tried, and how many seconds after the last time.
    static let (attempts, pause) = (3, 60.0)

    private static let limits = HTTPLimits(
        connect: .seconds(5), read: .seconds(5), total: .seconds(5), replyBytes: 4 << 10)

    /// Who reports.
    struct App: Sendable {
        let id: String
        let version: String
        let issuer: String
    }

    private struct State {
        var findings: [Finding] = []
        var attemptsLeft = IntegrityReporter.attempts
        var lastAttempt: Date?
        var task: Task<Void, Never>?
    }

    private let app: App
    private let prover: InstallationProver
    private let transport: any HTTPTransport
    private let clock: any WallClock
    private let logger: Logger
    private let state = Locked(State())

    /// - Parameters:
    ///   - app: who reports.
    ///   - prover: proves the installation's key, where there is one.
    ///   - transport: the pinned way to the server, below the probes.
    ///   - clock: tells when it may be tried again.
    ///   - logger: is told when the server takes no report.
    init(
        _ app: App, prover: InstallationProver, over transport: any HTTPTransport, clock: any WallClock, logger: Logger
    ) {
        (self.app, self.prover, self.transport) = (app, prover, transport)
        (self.clock, self.logger) = (clock, logger)
    }

    /// Remembers what was found first; what is found later is not reported any more.
    func note(_ findings: [Finding]) {
        guard !findings.isEmpty else { return }
        state.withLock { state in
            if state.findings.isEmpty { state.findings = findings }
        }
    }

    /// Begins to tell what was found, unless that is under way, was done, or has just failed.
    func begin() {
        state.withLock { state in
            guard !state.findings.isEmpty, state.task == nil, state.attemptsLeft > 0 else { return }
            let now = clock.now
            if let last = state.lastAttempt, now >= last, now.timeIntervalSince(last) < Self.pause { return }
            state.lastAttempt = now
            state.attemptsLeft -= 1
            let findings = state.findings
            state.task = Task { [self] in await run(findings) }
        }
    }

    /// Waits until nothing is under way any more.
    func finish() async { await state.withLock { $0.task }?.value }

    private func run(_ findings: [Finding]) async {
        let isDone: Bool
        do {
            isDone = try await send(findings)
        } catch {
            isDone = false
            logger.info("the report of probes was not sent", metadata: ["reason": "\(type(of: error))"])
        }
        state.withLock { state in
            state.task = nil
            if isDone { state.attemptsLeft = 0 }
        }
    }

    /// - Returns: whether there is nothing more to do: the server has it, or takes none.
    private func send(_ findings: [Finding]) async throws -> Bool {
        let place = IssuerEndpoint("assent_reports_endpoint", of: app.issuer)
        guard let url = try await place.find(over: transport, limits: Self.limits) else { return true }
        let client = try? await prover.clientID()
        let body = body(findings, client)
        let first = try await answer(url, body, proof: client == nil ? nil : proof(url, body, nonce: nil))
        guard client != nil, let nonce = first.response.headerFields.givenNonce, await Self.wantsNonce(first) else {
            return isSettled(first.status)
        }
        let second = try await answer(url, body, proof: proof(url, body, nonce: nonce))
        return isSettled(second.status)
    }

    /// Whether the server wants the proof anew, with a nonce (RFC 9449 §8).
    private static func wantsNonce(_ reply: HTTPReply) async -> Bool {
        guard [400, 401].contains(reply.status), let bytes = try? await reply.body.collect(upTo: limits.replyBytes)
        else { return false }
        return (try? JSONValue.parse(bytes))?["error"] == "use_dpop_nonce"
    }

    /// What is refused once would be refused again, unless there were too many.
    private func isSettled(_ status: Int) -> Bool {
        if 400..<500 ~= status, status != 429 {
            logger.info("the server takes no report of probes", metadata: ["status": "\(status)"])
        }
        return status < 500 && status != 429
    }

    private func answer(_ url: String, _ body: [UInt8], proof: String?) async throws -> HTTPReply {
        var fields: HTTPFields = [.contentType: "application/json"]
        fields[.dpop] = proof
        return try await transport.send(
            HTTPCall(.post, url: url, headerFields: fields, body: HTTPBody(body), limits: Self.limits))
    }

    private func proof(_ url: String, _ body: [UInt8], nonce: String?) async throws -> String {
        try await prover.proof(url: url, claim: Base64URL.encode(SHA2.sha256(body)), nonce: nonce)
    }

    private func body(_ findings: [Finding], _ client: String?) -> [UInt8] {
        let told = findings.map { finding in
            JSONValue(
                dictionaryLiteral: ("probe", .string(finding.kind.rawValue)),
                ("calls", finding.isRefused ? "refused" : "sent"))
        }
        return JSONValue(omittingNil: [
            "v": 1, "app": .string(app.id), "version": .string(app.version), "platform": .string(HostPlatform.name),
            "client": client.map { .string($0) }, "findings": .array(told),
        ]).serializedBytes()
    }
}
