// A bank's app: sign in, read the balance, pay with the user's approval.
import Assent
import Foundation

struct Transfer: Encodable {
    let to: String
    let amount: String
    let currency: String
}

struct Account: Decodable {
    let id: String
    let balance: Decimal
}

/// What an app draws on its screen.
protocol Screen: Sendable {
    func name() async throws -> String
    func password() async throws -> String
    func code() async throws -> String
    func confirm(_ fields: [DisplayField]) async -> Bool
    func show(_ text: String) async
}

func pay(on screen: some Screen, directory: URL, keyFile: URL, primary: Pin, backup: Pin) async throws {
    let assent = try Assent(
        .init(
            server: "https://am.bank.example/am", realm: "alpha",
            client: .init(
                id: "bank-app", redirectURI: "https://bank.example/app/callback", scopes: ["openid", "accounts"]),
            resources: ["https://api.bank.example": .accessToken],  // no other origin ever gets a credential
            pins: ["am.bank.example": [primary, backup], "api.bank.example": [primary, backup]],
            vault: .file(at: directory, keys: .softwareFile(keyFile))))  // .requireHardware where there is hardware

    // Sign in: the app answers what it is asked, until there is nothing left to ask.
    try await assent.journey("Login") { step in
        step[NameCallback.self]?.name = try await screen.name()
        step[PasswordCallback.self]?.password = try await screen.password()
        if step[TextInputCallback.self] != nil { step[TextInputCallback.self]?.text = try await screen.code() }
        return .next  // throws .unanswered if something that needs an answer has none
    }

    // A protected call: the token is attached and renewed, the pins are checked.
    let read = try await assent.send(.get("https://api.bank.example/accounts"))
    for account in try await read.json([Account].self) { await screen.show("\(account.id): \(account.balance)") }

    // A payment: when the server wants the user's assent, the handler is asked, once, with what is being approved.
    let transfer = Transfer(to: "Bob", amount: "200.00", currency: "EUR")
    let payment = try ResourceRequest.post("https://api.bank.example/transfers", json: transfer)
    do {
        let reply = try await assent.send(payment) { approval in
            if approval.isFirstStep {
                guard await screen.confirm(approval.display) else { return .decline }
            }
            // The user answers on a device: without this text they would not know the number to type there.
            if let waiting = approval.waiting { await screen.show(waiting.text) }
            approval.agree()  // presses "Approve", where the step has such a button
            approval.step[TextInputCallback.self]?.text = try await screen.code()
            return .next
        }
        await screen.show("paid: \(reply.status)")
    } catch let error as AuthorizationError where error.code == .outcomeUnknown {
        // Nobody can say whether it was paid. Ask; never pay again by yourself.
        guard let pending = error.pending else { throw error }
        let outcome = try await assent.ask(payment, about: pending)
        await screen.show("the server knows: \(outcome.status)")
    }
}

/// The same sign-in, one node at a time, for an app that draws its own screens.
func signIn(_ assent: Assent, on screen: some Screen) async throws {
    switch await assent.journey.start("Login") {
    case .continue(let step): await screen.show(step.unanswered.joined(separator: ", "))  // later: journey.next(step)
    case .success(let session): await screen.show("signed in to \(session.realm)")
    case .error(let error): await screen.show(error.message)  // the server said no; error.code is stable
    case .failure(let failure): await screen.show(failure.detail)  // the network, a parse error, a cancelled task
    }
}
