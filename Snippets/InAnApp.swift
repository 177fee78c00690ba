// The README's example: what stands between the marks is what it shows, which Scripts/check.sh compares.
import Assent
import Foundation

// What an app brings along: its screens and its own values.
struct Transfer: Encodable {
    let to: String
    let amount: String
    let currency: String
}

protocol Screen: Sendable {
    func name() async throws -> String
    func password() async throws -> String
    func code() async throws -> String
    func confirm(_ fields: [DisplayField]) async -> Bool
    func show(_ text: String) async
}

func pay(
    _ transfer: Transfer, on screen: some Screen, directory: URL, passphrase: Secret, primary: Pin, backup: Pin
) async throws -> Int {
    // README: begin
    let assent = try Assent(
        .init(
            server: "https://am.bank.example/am", realm: "alpha",
            client: .init(
                id: "bank-app", redirectURI: "https://bank.example/app/callback", scopes: ["openid", "accounts"]),
            resources: ["https://api.bank.example": .accessToken],  // no other origin ever gets a credential
            pins: ["am.bank.example": [primary, backup], "api.bank.example": [primary, backup]],
            vault: .file(at: directory, keys: .passphrase(passphrase))))  // a Secret("…"): no log shows it

    try await assent.journey("Login") { step in
        step[NameCallback.self]?.name = try await screen.name()
        step[PasswordCallback.self]?.password = try await screen.password()
        if step[TextInputCallback.self] != nil { step[TextInputCallback.self]?.text = try await screen.code() }
        return .next  // throws if something that needs an answer has none
    }

    let payment = try ResourceRequest.post("https://api.bank.example/transfers", json: transfer)
    let reply = try await assent.send(payment) { approval in
        if approval.isFirstStep {
            guard await screen.confirm(approval.display) else { return .decline }
        }
        if let waiting = approval.waiting { await screen.show(waiting.text) }  // what to do on the user's device
        approval.agree()  // presses "Approve", where the step has such a button
        if approval.step[TextInputCallback.self] != nil {
            approval.step[TextInputCallback.self]?.text = try await screen.code()
        }
        return .next
    }
    // README: end
    return reply.status
}
