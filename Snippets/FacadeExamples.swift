// The examples in the façade's doc comments: Scripts/check_examples.py compares what stands between the marks.
import Assent
import Foundation
import Logging

struct Transfer: Encodable { let to: String, amount: String }

struct Balance: Decodable { let amount: Decimal }

protocol Screen: Sendable {
    func name() async throws -> String
    func password() async throws -> String
    func confirm(_ fields: [DisplayField]) async -> Bool
    func draw(_ step: JourneyStep) async
    func show(_ text: String) async
}

func overview(_ configuration: Assent.Configuration, on screen: some Screen) async throws -> Int {
    // snippet: facade begin
    let assent = try Assent(configuration)
    try await assent.journey("Login") { step in
        step[NameCallback.self]?.name = try await screen.name()
        step[PasswordCallback.self]?.password = try await screen.password()
        return .next
    }
    let reply = try await assent.send(.get("https://api.bank.example/accounts"))
    // snippet: facade end
    return reply.status
}

func journey(_ assent: Assent, password: String) async throws {
    // snippet: journey begin
    try await assent.journey("Login") { step in
        step[NameCallback.self]?.name = "ana"
        step[PasswordCallback.self]?.password = password
        return .next
    }
    // snippet: journey end
}

func stateless(_ assent: Assent, on screen: some Screen) async throws {
    // snippet: stateless begin
    try await assent.authenticateStateless("Login") { step in
        step[NameCallback.self]?.name = try await screen.name()
        step[PasswordCallback.self]?.password = try await screen.password()
        return .next
    }
    // snippet: stateless end
}

func wiring(directory: URL, primary: Pin, backup: Pin) throws -> Assent {
    // snippet: wiring begin
    let assent = try Assent(
        .init(
            server: "https://am.bank.example/am", realm: "alpha",
            client: .init(id: "bank-app", redirectURI: "https://bank.example/app/callback"),
            resources: ["https://api.bank.example": .accessToken],
            pins: ["am.bank.example": [primary, backup], "api.bank.example": [primary, backup]],
            vault: .file(at: directory, keys: .requireHardware)))
    // snippet: wiring end
    return assent
}

func clientKey(_ configuration: inout Assent.Configuration, keys: any KeyProvider) async throws -> String {
    // snippet: clientKey begin
    let key = try await ClientKey.make(named: "bank-app", at: keys)
    let forTheServer = key.keySet.json.serialized()
    configuration.clientAuthentication = .privateKeyJWT(keys: keys, named: "bank-app")
    // snippet: clientKey end
    return forTheServer
}

func registration(
    _ configuration: inout Assent.Configuration, keys: any KeyProvider, token: Secret
) async throws -> String? {
    // snippet: registration begin
    configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
    let assent = try Assent(configuration)
    let clientID = try await assent.registration?.register().clientID
    // snippet: registration end
    return clientID
}

func unregister(_ assent: Assent, _ logger: Logger) async throws {
    // snippet: unregister begin
    let result = try await assent.unregister()
    for undone in result.undone { logger.warning("the server does not know yet: \(undone)") }
    // snippet: unregister end
}

func payment(_ assent: Assent, _ transfer: Transfer, on screen: some Screen) async throws -> Int {
    // snippet: payment begin
    let payment = try ResourceRequest.post("https://api.bank.example/transfers", json: transfer)
    let reply = try await assent.send(payment) { approval in
        if approval.isFirstStep {
            guard await screen.confirm(approval.display) else { return .decline }
        }
        if let waiting = approval.waiting { await screen.show(waiting.text) }
        approval.agree()
        return .next
    }
    // snippet: payment end
    return reply.status
}

func requests(_ assent: Assent) async throws -> [ResourceRequest] {
    // snippet: resource-request begin
    let search = ResourceRequest(path: "/accounts", parameters: ["kind": "savings", "year": [2025, 2026]])
    // snippet: resource-request end
    // snippet: mutable-request begin
    var draft = MutableResourceRequest(.get("https://api.bank.example/accounts"))
    draft.headers[.acceptLanguage] = "de"
    let reply = try await assent.send(draft.immutable)
    // snippet: mutable-request end
    guard reply.status == 200 else { return [] }
    // snippet: request-builder begin
    let transfer = RequestBuilder()
        .setMethod(.post)
        .setPath("/transfers")
        .setParameters(["to": "Bob", "amount": "200.00"])
        .build()
    // snippet: request-builder end
    // snippet: request-factory begin
    let accounts = ResourceRequestFactory.makeResourceRequest(path: "/accounts", method: .get)
    // snippet: request-factory end
    return [search, transfer, accounts]
}

func balance(_ assent: Assent) async throws -> Decimal {
    // snippet: balance begin
    let reply = try await assent.send(.get("https://api.bank.example/balance"))
    let balance = try await reply.json(Balance.self)
    // snippet: balance end
    return balance.amount
}

func outcome(
    _ assent: Assent, _ payment: ResourceRequest, approve: (inout Approval) async throws -> StepAction
) async throws -> HTTPReply {
    // snippet: outcome begin
    do {
        return try await assent.send(payment, approve: approve)
    } catch let error as AuthorizationError where error.code == .outcomeUnknown {
        guard let pending = error.pending else { throw error }
        return try await assent.ask(payment, about: pending)
    }
    // snippet: outcome end
}

func subject(_ assent: Assent) async throws -> String? {
    // snippet: user begin
    guard let user = try await assent.user() else { return nil }
    return user.idToken?.subject
    // snippet: user end
}

func leave(_ assent: Assent, _ logger: Logger) async throws -> Int {
    // snippet: signOut begin
    let result = await assent.signOut()
    for undone in result.undone { logger.warning("the server does not know yet: \(undone)") }
    // snippet: signOut end
    // snippet: retrySignOuts begin
    let undone = try await assent.retrySignOuts()
    // snippet: retrySignOuts end
    return undone.count
}

func walk(_ assent: Assent, on screen: some Screen) async throws {
    // snippet: handler begin
    try await assent.journey("Login") { step in
        for prompt in step.unanswered { await screen.show(prompt) }
        step[NameCallback.self]?.name = try await screen.name()
        step[PasswordCallback.self]?.password = try await screen.password()
        return .next
    }
    // snippet: handler end
}

func start(_ assent: Assent, on screen: some Screen) async {
    // snippet: start begin
    switch await assent.journey.start("Login") {
    case .continue(let step): return await screen.draw(step)
    case .success(let session): return await screen.show("signed in to \(session.realm)")
    case .error(let error): return await screen.show(error.message)
    case .failure(let failure): return await screen.show(failure.detail)
    }
    // snippet: start end
}

func next(_ assent: Assent, _ step: JourneyStep, on screen: some Screen) async throws -> JourneyNode {
    // snippet: next begin
    var step = step
    step[PasswordCallback.self]?.password = try await screen.password()
    return await assent.journey.next(step)
    // snippet: next end
}

func browser(_ assent: Assent, open: @escaping @Sendable (String) -> Void) async throws -> Assent.User {
    // snippet: browser begin
    let user = try await assent.signIn { url in open(url) }
    // snippet: browser end
    return user
}

func receiver(_ assent: Assent, _ receiver: any RedirectReceiver) async throws -> Assent.User {
    // snippet: receiver begin
    let user = try await assent.signIn(through: receiver, parameters: [.init("prompt", "login")])
    // snippet: receiver end
    return user
}

func email(_ user: Assent.User) throws -> String? {
    // snippet: idToken begin
    struct Person: Decodable { let email: String }
    return try user.idToken?.claims.decode(Person.self).email
    // snippet: idToken end
}

func token(_ user: Assent.User) async throws -> Secret {
    // snippet: token begin
    let accessToken = try await user.token().accessToken
    // snippet: token end
    return accessToken
}

func profile(_ user: Assent.User) async throws -> String {
    // snippet: userInfo begin
    struct Profile: Decodable { let name: String, email: String? }
    let profile = try await user.userInfo().decode(Profile.self)
    // snippet: userInfo end
    return profile.name
}

func signOut(_ assent: Assent, open: @escaping @Sendable (String) -> Void) async -> Bool {
    // snippet: browserSignOut begin
    let result = await assent.signOut { url in open(url) }
    // snippet: browserSignOut end
    return result.isComplete
}

func layers(_ configuration: inout Assent.Configuration) {
    // snippet: layers begin
    struct Channel: HTTPMiddleware {
        func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
            var call = call
            call.request.headerFields[.userAgent] = "BankApp/7"
            return try await next.send(call)
        }
    }
    configuration.layers = [Channel()]
    // snippet: layers end
}

func settings(
    client: Assent.Client, resources: [String: ResourceAccess], pins: [String: PinRequirement], directory: URL,
    passphrase: Secret
) -> Assent.Configuration {
    // snippet: configuration begin
    var configuration = Assent.Configuration(
        server: "https://am.bank.example/am", realm: "alpha", client: client, resources: resources, pins: pins,
        vault: .file(at: directory, keys: .passphrase(passphrase)))
    configuration.acceptLanguage = "de, en;q=0.5"
    configuration.requiresBinding = true
    // snippet: configuration end
    return configuration
}

func allowSigning(_ configuration: inout Assent.Configuration, keys: any KeyProvider) {
    // snippet: configuration-device begin
    configuration.deviceKeys = keys
    configuration.device.issuers = ["https://am.bank.example/am/signing/realms/root/realms/alpha"]
    configuration.device.modes = [.assisted]
    // snippet: configuration-device end
}

func vaults(directory: URL, passphrase: Secret) -> [Assent.Vault] {
    // snippet: vault begin
    let hardware = Assent.Vault.file(at: directory, keys: .requireHardware)
    let fallback = Assent.Vault.file(
        at: directory, keys: .preferHardware(otherwise: .passphrase(KnownSecret(passphrase))))
    // snippet: vault end
    return [hardware, fallback]
}

func policy(on screen: some Screen) throws -> AuthorizationPolicy {
    // snippet: policy begin
    let payments = try AuthorizationPolicy("https://api.bank.example/transfers/") { approval in
        if approval.isFirstStep {
            guard await screen.confirm(approval.display) else { return .decline }
        }
        if let waiting = approval.waiting { await screen.show(waiting.text) }
        approval.agree()
        return .next
    }
    // snippet: policy end
    return payments
}

func policies(_ configuration: inout Assent.Configuration, on screen: some Screen) throws {
    // snippet: policies begin
    configuration.policies = [
        try AuthorizationPolicy("https://api.bank.example/transfers/") { approval in
            if approval.isFirstStep {
                guard await screen.confirm(approval.display) else { return .decline }
            }
            if let waiting = approval.waiting { await screen.show(waiting.text) }
            approval.agree()
            return .next
        }
    ]
    // snippet: policies end
}

func decision(_ assent: Assent, on screen: some Screen) async throws -> Bool {
    // snippet: decision begin
    let decision = try await assent.decision(on: "https://api.bank.example:443/accounts") { approval in
        if approval.isFirstStep {
            guard await screen.confirm(approval.display) else { return .decline }
        }
        if let waiting = approval.waiting { await screen.show(waiting.text) }
        approval.agree()
        return .next
    }
    return decision.allows("GET")
    // snippet: decision end
}

func advice(_ assent: Assent, _ field: String, on screen: some Screen) async throws -> Bool {
    // snippet: advice begin
    guard let advice = try Advice(challenge: field) else { return false }
    try await assent.journey(advice: advice) { step in
        step[PasswordCallback.self]?.password = try await screen.password()
        return .next
    }
    // snippet: advice end
    return true
}
