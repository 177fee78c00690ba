import AssentCore
import Logging

/// Asks all probes before a call is looked at, and sends none when one of them finds what is refused. It is the
/// outermost layer of each way to the network.
struct IntegrityGuard: HTTPMiddleware {
    private let probes: [any IntegrityProbe]
    private let controls: @Sendable () -> IntegrityControls
    private let clock: any WallClock
    private let logger: Logger
    private let reporter: IntegrityReporter?
    /// Copies of this value report together.
    private let reported: Reported

    /// - Parameters:
    ///   - probes: are asked in this order, each one each time.
    ///   - controls: what happens now for each kind; a new version of the trust file changes it.
    ///   - reporter: tells the server of the first findings.
    ///   - clock: tells how long ago they were asked.
    ///   - logger: is told of each kind of finding once.
    init(
        probes: [any IntegrityProbe], controls: @escaping @Sendable () -> IntegrityControls,
        reporter: IntegrityReporter? = nil, clock: any WallClock, logger: Logger
    ) {
        self.probes = probes
        self.controls = controls
        self.clock = clock
        self.logger = logger
        self.reporter = reporter
        reported = Reported()
    }

    /// Asks the probes, and reports what they find.
    ///
    /// - Returns: what the call's first sending need not do again.
    /// - Throws: `HTTPTransportError` with code `integrityFailed` for the first finding that is refused.
    @discardableResult
    @Sendable func examine() throws(HTTPTransportError) -> IntegrityExamination {
        let refusal = examined()
        reporter?.begin()
        if let refusal { throw refusal }
        return IntegrityExamination(at: clock.now)
    }

    /// Asks the probes when the app begins, before anything may be sent: what they find is told with the first call.
    func examineAtStart() { _ = examined() }

    private func examined() -> HTTPTransportError? {
        let controls = controls()
        var refusal: HTTPTransportError?
        var findings: [IntegrityReporter.Finding] = []
        for probe in probes where controls[probe.kind] != .off {
            guard let finding = probe.finding() else { continue }
            let isRefused = controls[probe.kind] == .refuse
            report(probe.kind, finding, isRefused: isRefused)
            // An app may have several probes of one kind.
            if !findings.contains(where: { $0.kind == probe.kind }) {
                findings.append(.init(kind: probe.kind, isRefused: isRefused))
            }
            if isRefused, refusal == nil { refusal = .integrityFailed(probe.kind, finding) }
        }
        reporter?.note(findings)
        return refusal
    }

    func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        if call.examination?.take(at: clock.now) != true { try examine() }
        return try await next.send(call)
    }

    private func report(_ kind: IntegrityKind, _ finding: String, isRefused: Bool) {
        guard reported.kinds.withLock({ $0.insert(kind).inserted }) else { return }
        logger.warning(
            "a probe has found something: \(finding)",
            metadata: ["probe": "\(kind.rawValue)", "calls": isRefused ? "refused" : "sent"])
    }

    private final class Reported: Sendable {
        let kinds = Locked<Set<IntegrityKind>>([])
    }
}

/// Asks all probes ahead of a layer that may ask the server something before the call leaves. The guard below does not
/// ask them again, unless that has taken long.
struct IntegrityAhead: HTTPMiddleware {
    let integrity: IntegrityGuard

    func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        var call = call
        call.examination = try integrity.examine()
        return try await next.send(call)
    }
}
