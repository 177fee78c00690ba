public import AssentCore
import HTTPTypes
public import Logging

/// Starts journeys and answers their steps (AM's `authenticate` endpoint), one node at a time.
///
/// ```swift
/// let client = JourneyClient(
///     configuration: try JourneyConfiguration(server: "https://am.bank.example/am", realm: "alpha"),
///     transport: transport)
/// let session = try await client.run("Login") { step in
///     if let refusal = step.refusal { await screen.show(refusal.messages.first ?? "That was wrong.") }
///     step[NameCallback.self]?.name = try await screen.name()
///     step[PasswordCallback.self]?.password = try await screen.password()
///     return .next
/// }
/// ```
///
/// It keeps no state: what a run needs travels in its steps, so runs cannot disturb each other. None of its functions
/// throws except ``run(_:options:session:handler:)`` and its relatives, which walk a whole journey.
public struct JourneyClient: Sendable {
    /// Where journeys run and how.
    public let configuration: JourneyConfiguration

    let clock: any WallClock
    /// Proves the key of sessions and journeys, where the app has one for them.
    package var prover: (any SessionProver)?

    private let transport: any HTTPTransport
    private let logger: Logger

    /// A client that sends through `transport`.
    public init(
        configuration: JourneyConfiguration, transport: any HTTPTransport, clock: any WallClock = SystemClock(),
        logger: Logger = Logger(label: "assent.journey")
    ) {
        self.configuration = configuration
        self.transport = transport
        self.clock = clock
        self.logger = logger
    }

    /// Starts a journey.
    ///
    /// - Parameters:
    ///   - tree: its name; `nil` for the realm's default.
    ///   - options: how to start it.
    ///   - session: the user's session, if there is one: AM adds to it rather than making another.
    /// - Returns: the first step, or the end of a journey that asks nothing.
    public func start(
        _ tree: String? = nil, options: JourneyOptions = JourneyOptions(), session: Session? = nil
    ) async -> JourneyNode {
        var query = FormItems()
        if let tree {
            query.append("authIndexType", "service")
            query.append("authIndexValue", tree)
        }
        return await begin(query, options, session)
    }

    /// Starts the journey that an advice asks for, on top of the user's session.
    public func start(
        advice: Advice, options: JourneyOptions = JourneyOptions(), session: Session?
    ) async -> JourneyNode {
        var query = FormItems()
        query.append("authIndexType", "composite_advice")
        query.append("authIndexValue", CompositeAdvice.xml(advice))
        return await begin(query, options, session)
    }

    /// Goes on with a journey that was suspended, from the link that the user got.
    ///
    /// Of `url` only `suspendedId` is used, so a forged link can lead nowhere else; it is checked before anything is
    /// sent.
    public func resume(
        _ url: String, options: JourneyOptions = JourneyOptions(), session: Session? = nil
    ) async -> JourneyNode {
        let id = try? URLText.query(of: url)?.single("suspendedId")
        guard let id, !id.isEmpty, id.utf8.count <= 4096 else {
            return .failure(
                JourneyFailure(.invalidResumeURL, "The link has no suspendedId, several, or one that is too long."))
        }
        var query = FormItems()
        query.append("suspendedId", id)
        return await begin(query, options, session)
    }

    /// Sends the answers of a step.
    ///
    /// A step is answered once: a second call with it or a copy, also at the same time, fails with code `stepInUse` and
    /// sends nothing. After a failure without reply, and after an error that is transient, the same step may be sent
    /// again.
    public func next(_ step: JourneyStep) async -> JourneyNode {
        guard step.flow.claim() else {
            return .failure(
                JourneyFailure(.stepInUse, "This step was answered already, or its answers are being sent."))
        }
        var query = FormItems()
        if step.flow.noSession { query.append("noSession", "true") }
        let node = await exchange(query, step.reply, step.flow)
        switch node {
        case .continue(var next):
            next.refusal = AnswerRefusal(of: step, by: next)
            return .continue(next)
        case .failure: step.flow.giveBack()
        case .error(let error) where error.status >= 500 || error.isTransient: step.flow.giveBack()
        case .success, .error: break
        }
        return node
    }

    private func begin(_ items: FormItems, _ options: JourneyOptions, _ session: Session?) async -> JourneyNode {
        var query = items
        if options.forceAuth { query.append("ForceAuth", "true") }
        if options.noSession { query.append("noSession", "true") }
        for item in options.parameters { query.append(item.name, item.value) }
        let session = session.flatMap { $0.token.isEmpty ? nil : $0 }
        return await exchange(query, [:], JourneyFlow(session: session, noSession: options.noSession))
    }

    private func exchange(_ query: FormItems, _ body: JSONValue, _ flow: JourneyFlow) async -> JourneyNode {
        let url = query.items.reduce(configuration.authenticateURL) { URLText.appending($1.name, $1.value, to: $0) }
        let node: JourneyNode
        do throws(JourneyFailure) {
            let reply = try await post(url, version: "resource=2.1,protocol=1.0", body, .journey(flow.session))
            // It says nothing about what was typed: the server has looked at nothing else.
            if reply.refusesProof { throw Self.proofRefused }
            node = ReplyReading(types: configuration.callbacks, limits: configuration.limits).node(
                status: reply.status, location: reply.location, body: reply.body, flow: flow)
        } catch {
            node = .failure(error)
        }
        log(node)
        return node
    }

    struct Reply {
        let status: Int
        let location: String?
        let body: [UInt8]

        /// Whether the server says that the proof of a key is missing or not good.
        var refusesProof = false
    }

    func post(
        _ url: String, version: String, _ body: JSONValue, _ purpose: ProofPurpose
    ) async throws(JourneyFailure) -> Reply {
        var fields = HTTPFields()
        fields[.accept] = "application/json"
        fields[.contentType] = "application/json"
        fields[.acceptLanguage] = configuration.acceptLanguage
        fields[.acceptAPIVersion] = version
        fields[.requestedWith] = "assent"
        if let session = purpose.session, let name = HTTPField.Name(configuration.sessionCookieName) {
            fields[name] = session.token.reveal()
        }
        let call: HTTPCall
        do throws(WireError) {
            call = try HTTPCall(
                .post, url: url, headerFields: fields, body: HTTPBody(body.serializedBytes()),
                limits: configuration.limits.http)
        } catch {
            throw JourneyFailure(.invalidConfiguration, "The server's URL cannot be used: \(error.detail).")
        }
        var status: Int?
        do {
            let reply = try await send(call, purpose)
            status = reply.status
            let bytes = try await reply.body.collect(upTo: configuration.limits.http.replyBytes)
            return Reply(
                status: reply.status, location: reply.response.headerFields[.location], body: bytes,
                refusesProof: Self.refusesProof(reply.response))
        } catch {
            throw Self.failure(error, status: status)
        }
    }

    private func send(_ call: HTTPCall, _ purpose: ProofPurpose) async throws -> HTTPReply {
        guard let prover else { return try await transport.send(call) }
        return try await prover.send(call, for: purpose, over: transport)
    }

    /// Whether a reply is about the proof (RFC 9449 §7.1, §9). It says nothing about the session then.
    private static func refusesProof(_ response: HTTPResponse) -> Bool {
        response.status == .unauthorized
            && response.headerFields[values: .wwwAuthenticate].contains { field in
                ((try? Challenge.parse(field)) ?? []).contains { challenge in
                    challenge.isScheme(TokenScheme.dpop.rawValue) && challenge["error"] != nil
                }
            }
    }

    private static func failure(_ error: any Error, status: Int?) -> JourneyFailure {
        if let error = error as? SessionProofError {
            return JourneyFailure(
                error.isLost ? .keyLost : .keyUnavailable, error.detail, suggestion: error.suggestion)
        }
        if error is CancellationError || Task.isCancelled {
            return JourneyFailure(.cancelled, "The task was cancelled.", status: status)
        }
        guard let error = error as? HTTPTransportError else {
            return JourneyFailure(
                .transport, "A layer of the transport failed with \(type(of: error)).", status: status)
        }
        switch error.code {
        case .cancelled: return JourneyFailure(.cancelled, "The request was cancelled.", status: status)
        case .bodyTooLarge: return JourneyFailure(.replyTooLarge, error.detail, status: status)
        default: return JourneyFailure(.transport, error.detail, status: status, transportError: error)
        }
    }

    private func log(_ node: JourneyNode) {
        switch node {
        case .continue(let step): logger.debug("journey step", metadata: ["step": "\(step.debugDescription)"])
        case .success: logger.debug("journey done")
        case .error(let error): logger.debug("journey refused", metadata: ["error": "\(error)"])
        case .failure(let failure): logger.debug("journey failed", metadata: ["code": "\(failure.code)"])
        }
    }
}
