import AssentCore
import AssentEnforcement
import AssentHummingbird
import AssentTesting
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore

/// A policy server that knows one session, and a service behind the middleware that counts what its handler does.
final class PolicyServerDouble: Sendable {
    typealias Answer = @Sendable (InMemoryTransport.Exchange) throws -> HTTPReply

    /// What it answers about the policies.
    let decision: Locked<Answer>

    /// What the handler does with a request.
    let handler: Locked<@Sendable (EnforcedAccess, String) throws -> Response>

    /// What the handler was called with.
    let calls = Locked<[(access: EnforcedAccess, body: String)]>([])

    /// The questions about policies, and the reports, as they came.
    let questions = Locked<[String]>([])
    let reports = Locked<[String]>([])
    let reportStatus = Locked(200)

    /// How many of the next reports it does not hear.
    let lostReports = Locked(0)

    /// How often it was asked for the user of a session, and whether that is alive.
    let lookUps = Locked(0)
    let isAlive = Locked(true)

    static let session = "user-session"

    init(_ members: JSONObject = [:]) {
        decision = Locked({ @Sendable _ in Self.decision(members) })
        handler = Locked({ @Sendable _, _ in Response(status: .created) })
    }

    static func decision(_ members: JSONObject) -> HTTPReply {
        var decision: JSONObject = [
            "resource": "https://pay.example:443/payments", "actions": [:], "attributes": [:], "advices": [:],
            "ttl": 9_223_372_036_854_775_807,
        ]
        for member in members.members { decision[member.name] = member.value }
        return .json(200, [.object(decision)])
    }

    private func answer(_ exchange: InMemoryTransport.Exchange) throws -> HTTPReply {
        let path = exchange.request.path ?? ""
        if path.contains("sessions?_action=validate") {
            lookUps.withLock { $0 += 1 }
            guard exchange.text.contains(#""\#(Self.session)""#), isAlive.withLock({ $0 }) else {
                return .json(200, ["valid": false])
            }
            return .json(200, ["valid": true, "uid": "ana", "realm": "/alpha"])
        }
        if path.contains("_action=report") {
            reports.withLock { $0.append(exchange.text) }
            let isLost = lostReports.withLock { lost in
                defer { lost = max(0, lost - 1) }
                return lost > 0
            }
            if isLost { throw HTTPTransportError(.connectionClosed, "Cut.", mayHaveHadEffect: true) }
            return .json(reportStatus.withLock { $0 }, [:])
        }
        questions.withLock { $0.append(exchange.text) }
        return try decision.withLock { $0 }(exchange)
    }

    private func application(
        binding: BoundContent?, reporting: OutcomeReporting?, isService: Bool
    ) throws -> some ApplicationProtocol {
        let policies = PolicyClient(
            try PolicyServer("https://am.example/am", realm: "alpha"), policySet: "payments",
            credentials: GivenSession(Secret("pep-session")),
            transport: InMemoryTransport { try self.answer($0) })
        let router = Router(context: BasicEnforcedContext.self)
        let middleware = try PolicyMiddleware<BasicEnforcedContext>(
            policies, origin: "https://pay.example", binding: binding, reporting: reporting)
        let payments = router.group("payments").add(middleware: middleware)
        payments.head { _, _ in Response(status: .ok) }
        payments.post { request, context in
            let access = try context.allowed()
            let body = try await request.body.collect(upTo: 1 << 16)
            let text = String(decoding: body.readableBytesView, as: UTF8.self)
            self.calls.withLock { $0.append((access, text)) }
            return try self.handler.withLock { $0 }(access, text)
        }
        router.post("open") { _, context in
            _ = try context.allowed()
            return Response(status: .ok)
        }
        guard isService, let reporting else { return Application(router: router) }
        return Application(router: router, services: [reporting])
    }

    /// Posts to the service, which stops after that.
    func post(
        _ target: String = "/payments", _ fields: [(String, String)] = PolicyServerDouble.json,
        body: String = #"{"to":"Bob"}"#, binding: BoundContent? = .json, reporting: OutcomeReporting? = nil,
        isService: Bool = false
    ) async throws -> TestResponse {
        var headers = HTTPFields()
        for (name, value) in fields {
            if let name = HTTPField.Name(name) { headers.append(HTTPField(name: name, value: value)) }
        }
        let (target, all) = (target, headers)
        let application = try application(binding: binding, reporting: reporting, isService: isService)
        return try await application.test(.router) { client in
            try await client.execute(uri: target, method: .post, headers: all, body: ByteBuffer(string: body))
        }
    }

    /// Asks the service for a head alone; it stops after that.
    func head(_ fields: HTTPFields = [:]) async throws -> TestResponse {
        let application = try application(binding: nil, reporting: nil, isService: false)
        return try await application.test(.router) { client in
            try await client.execute(uri: "/payments", method: .head, headers: fields)
        }
    }

    static let json = [("iPlanetDirectoryPro", session), ("Content-Type", "application/json")]
}

extension TestResponse {
    var text: String { String(decoding: body.readableBytesView, as: UTF8.self) }
}
