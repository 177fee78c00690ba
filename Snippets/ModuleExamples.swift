// The examples in the doc comments of the modules below the façade: Scripts/check_examples.py compares what stands
// between the marks.
import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTokens
import AssentTransportNIO

protocol Display: Sendable {
    func name() async throws -> String
    func password() async throws -> String
    func confirm(_ fields: [DisplayField]) async -> Bool
    func show(_ text: String) async
}

func call(primary: Pin, backup: Pin) async throws -> Int {
    // snippet: transport begin
    let transport = try NIOTransport(
        configuration: .init(pins: ["api.bank.example": .pins([primary, backup]), "status.bank.example": .unpinned]))
    let reply = try await transport.send(try HTTPCall(.get, url: "https://status.bank.example/"))
    await transport.shutdown()
    // snippet: transport end
    return reply.status
}

func signIn(over transport: any HTTPTransport, on screen: some Display) async throws -> Session {
    // snippet: journeys begin
    let client = JourneyClient(
        configuration: try JourneyConfiguration(server: "https://am.bank.example/am", realm: "alpha"),
        transport: transport)
    let session = try await client.run("Login") { step in
        if let refusal = step.refusal { await screen.show(refusal.messages.first ?? "That was wrong.") }
        step[NameCallback.self]?.name = try await screen.name()
        step[PasswordCallback.self]?.password = try await screen.password()
        return .next
    }
    // snippet: journeys end
    return session
}

func tell(_ step: JourneyStep, on screen: some Display) async {
    // snippet: refusal begin
    if let refusal = step.refusal { await screen.show(refusal.messages.first ?? "That was wrong.") }
    // snippet: refusal end
}

func accessToken(
    of session: Session, transport: any HTTPTransport, vault: any SecretStore
) async throws -> (TokenManager, Secret) {
    // snippet: tokens begin
    let tokens = TokenManager(
        configuration: try TokenConfiguration(
            issuer: "https://am.bank.example/am/oauth2/realms/root/realms/alpha", clientID: "bank-app",
            redirectURI: "https://bank.example/app/callback"),
        transport: transport, store: vault)
    try await tokens.install(session)
    let accessToken = try await tokens.tokens().accessToken
    // snippet: tokens end
    return (tokens, accessToken)
}

func accounts(_ tokens: TokenManager, over transport: any HTTPTransport) async throws -> Int {
    // snippet: credentials begin
    let resources = AuthenticatingTransport(
        tokens, resources: [try Origin("https://api.bank.example"): .accessToken], over: transport)
    let reply = try await resources.send(try HTTPCall(.get, url: "https://api.bank.example/accounts"))
    // snippet: credentials end
    return reply.status
}

func pay(_ client: AuthorizedClient, on screen: some Display) async throws -> Int {
    // snippet: approval begin
    let call = try HTTPCall(
        .post, url: "https://api.bank.example/transfers", headerFields: [.contentType: "application/json"],
        body: HTTPBody(#"{"to":"Bob","amount":"200.00"}"#))
    let reply = try await client.send(call) { approval in
        if approval.isFirstStep {
            guard await screen.confirm(approval.display) else { return .decline }
        }
        if let waiting = approval.waiting { await screen.show(waiting.text) }
        approval.agree()
        return .next
    }
    // snippet: approval end
    return reply.status
}
