// The counterparts of docs/migrating-authorization.md, so that the page cannot say what does not compile: a test
// compares the two.
import Assent
import AssentURLSession
import Foundation
import HTTPTypes

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

struct TransferOrder: Encodable { let to: String, amount: String }

// What an app brings along: its screens.
protocol ApprovalScreen: Sendable {
    func confirm(_ fields: [DisplayField]) async -> Bool
    func show(_ text: String) async
    func name() async throws -> String
    func password() async throws -> String
    func code() async throws -> String
}

/// Who answers for a part of a resource.
func payments(on screen: some ApprovalScreen) throws -> AuthorizationPolicy {
    var policy = try AuthorizationPolicy("https://api.bank.example/transfers/") { approval in
        if approval.isFirstStep {
            guard await screen.confirm(approval.display) else { return .decline }
        }
        if let waiting = approval.waiting { await screen.show(waiting.text) }
        approval.agree()
        if approval.step[TextInputCallback.self] != nil {
            approval.step[TextInputCallback.self]?.text = try await screen.code()
        }
        return .next
    }
    policy.patience = .seconds(120)
    // A resource that says in its own words what it wants.
    policy.recognise = { reply in
        guard reply.status == 403, let header = HTTPField.Name("X-Advice"),
            let field = reply.response.headerFields[header]
        else { return nil }
        return try Advice(challenge: field)
    }
    // A resource that looks for the transaction's id in a place of its own.
    policy.decorate = { call, transactionID in
        guard let header = HTTPField.Name("transactionId") else { return }
        call.request.headerFields[header] = transactionID
    }
    policy.requiresBinding = true
    return policy
}

/// The app's settings: what gets which credentials, and who answers.
func settings(_ configuration: inout Assent.Configuration, on screen: some ApprovalScreen) throws {
    configuration.resources = [
        "https://api.bank.example": .session,
        "https://other.bank.example": .accessToken,
    ]
    configuration.policies = [try payments(on: screen)]
    configuration.sessionCookieName = "iPlanetDirectoryPro"
    configuration.callbacks = .all
}

/// A call, and what comes of it.
func pay(_ assent: Assent, on screen: some ApprovalScreen) async throws -> Int? {
    let payment = try ResourceRequest.post(
        "https://api.bank.example/transfers/", json: TransferOrder(to: "Bob", amount: "200.00"))
    do {
        let reply = try await assent.send(payment)
        return reply.status
    } catch let error as AuthorizationError {
        switch error.code {
        case .declined, .expired, .timedOut: await screen.show(error.detail)
        case .outcomeUnknown: await screen.show("Look before you send it again.")
        default: throw error
        }
        return nil
    }
}

/// The same with a handler of this call alone, which signs in step by step.
func payByPassword(_ assent: Assent, _ payment: ResourceRequest, on screen: some ApprovalScreen) async throws -> Int {
    let reply = try await assent.send(payment) { approval in
        await screen.show("\(approval.method) \(approval.url), \(approval.advice.kind)")
        approval.step[NameCallback.self]?.name = try await screen.name()
        approval.step[PasswordCallback.self]?.password = try await screen.password()
        approval.step[ValidatedCreateUsernameCallback.self]?.name = try await screen.name()
        approval.step[ValidatedCreatePasswordCallback.self]?.password = try await screen.password()
        if let unknown = approval.step[UnknownCallback.self] { await screen.show(unknown.prompt) }
        return .next
    }
    return reply.status
}

/// For an app that sends its calls by another way.
func follow(_ assent: Assent, _ field: String, on screen: some ApprovalScreen) async throws -> String? {
    guard let advice = try Advice(challenge: field) else { return nil }
    try await assent.journey(advice: advice) { step in
        step[PasswordCallback.self]?.password = try await screen.password()
        return .next
    }
    return advice.transactionID
}

/// A handler with a name of its own.
func agree(_ approval: inout Approval, on screen: some ApprovalScreen) async -> StepAction {
    if let waiting = approval.waiting { await screen.show(waiting.text) }
    approval.agree()
    return .next
}

/// The same from a redirect, or from the body of a policy decision.
func advice(location: String, body: [UInt8]) throws -> Advice? {
    try Advice(location: location) ?? Advice(decision: body)
}

/// A question to AM itself.
func mayRead(_ assent: Assent, on screen: some ApprovalScreen) async throws -> Bool {
    let decision = try await assent.decision(
        on: "https://api.bank.example:443/accounts", application: AuthorizedClient.defaultApplication
    ) { approval in
        if approval.isFirstStep {
            let isOfOneRequest = !approval.advice[.transaction].isEmpty
            guard isOfOneRequest, await screen.confirm(approval.display) else { return .decline }
        }
        if let waiting = approval.waiting { await screen.show(waiting.text) }
        approval.agree()
        return .next
    }
    return decision.allows("GET")
}

/// An app that calls by `URLSession`. The class has the client.
class BankProtocol: AssentURLProtocol {
    override class var client: AuthorizedClient? { bank }
    override class var limits: HTTPLimits { HTTPLimits(read: .seconds(30), total: nil) }
}

let bank: AuthorizedClient? = nil

func session() -> URLSession {
    let sessionConfiguration = URLSessionConfiguration.ephemeral
    sessionConfiguration.protocolClasses = [BankProtocol.self]
    return URLSession(configuration: sessionConfiguration)
}

func underlying(_ error: any Error) -> String? {
    guard let error = AssentURLProtocol.underlyingError(of: error) else { return nil }
    return error.detail
}
