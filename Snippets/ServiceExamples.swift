// The examples of services that enforce policies: Scripts/check_examples.py compares what stands between the marks.
import AssentCore
import AssentEnforcement
import AssentHummingbird
import AssentTransportNIO
import Hummingbird

func policies(password: Secret, transport: any HTTPTransport) throws -> PolicyClient {
    // snippet: policies begin
    let server = try PolicyServer("https://am.bank.example/am", realm: "/alpha")
    let account = ServiceAccount(
        server, journey: "Service", username: "payments", password: password, transport: transport)
    let policies = PolicyClient(server, policySet: "payments", credentials: account, transport: transport)
    // snippet: policies end
    return policies
}

func router(_ policies: PolicyClient) throws -> Router<BasicEnforcedContext> {
    let router = Router(context: BasicEnforcedContext.self)
    // snippet: middleware begin
    let protected = try PolicyMiddleware<BasicEnforcedContext>(
        policies, origin: "https://pay.bank.example", binding: .json)
    router.group("transfers").add(middleware: protected).post { _, context in
        let access = try context.allowed()
        return "\(access.user.name) pays, by \(access.transactionID ?? "nothing")"
    }
    // snippet: middleware end
    return router
}

func engine(secret: Secret, transport: any HTTPTransport) throws -> EnforcementClient {
    // snippet: engine begin
    let server = try PolicyServer("https://am.bank.example/am", realm: "/alpha")
    let account = ClientAccount(server, clientID: "payments", secret: secret, transport: transport)
    let engine = EnforcementClient(server, credentials: account, transport: transport)
    // snippet: engine end
    return engine
}

func router(_ engine: EnforcementClient) throws -> Router<BasicEnforcedContext> {
    let router = Router(context: BasicEnforcedContext.self)
    // snippet: tokens begin
    var route = EnforcedRoute(policySet: "payments", scopes: ["payments"])
    route.claims = ["email"]
    let protected = try PolicyMiddleware<BasicEnforcedContext>(
        engine, route, origin: "https://pay.bank.example", binding: .json)
    router.group("transfers").add(middleware: protected).post { _, context in
        let access = try context.allowed()
        return "\(access.user.name) pays, with \(access.scopes ?? ["a session"])"
    }
    // snippet: tokens end
    return router
}

func application(
    _ policies: PolicyClient, _ router: Router<BasicEnforcedContext>
) throws -> some ApplicationProtocol {
    // snippet: reporting begin
    let reporting = OutcomeReporting()
    let protected = try PolicyMiddleware<BasicEnforcedContext>(
        policies, origin: "https://pay.bank.example", binding: .json, reporting: reporting)
    router.group("transfers").add(middleware: protected).post { _, context in
        try context.allowed().transactionID ?? "nothing"
    }
    let application = Application(router: router, services: [reporting])
    // snippet: reporting end
    return application
}

func decide(_ policies: PolicyClient, session: Secret, body: [UInt8], transaction: String?) async throws -> Bool {
    // snippet: decide begin
    var request = EnforcedRequest(
        "POST", "https://pay.bank.example/transfers", subject: .session(session), transactionID: transaction)
    request.contentType = "application/json"
    request.body = body
    let decision = try await policies.decide(request)
    guard case .permitted(let permit) = decision else { return false }
    // … carry it out, once …
    if let id = permit.transactionID { try await policies.report(.answered(status: 201), ofTransaction: id) }
    // snippet: decide end
    return true
}
