import Foundation
import HTTPTypes
import Hummingbird

struct AccountReply: ResponseEncodable {
    let owner: String
    let balance: String
    let currency: String
}

struct TransferRequest: Decodable {
    let to: String
    let amount: String
    let currency: String
}

struct TransferReply: ResponseEncodable {
    let id: Int64
    let from: String
    let to: String
    let amount: String
    let currency: String
}

struct AppInfoReply: ResponseEncodable {
    let name: String
    let oldestVersion: String
}

struct GreetingReply: ResponseEncodable {
    let greeting: String
}

struct StatusReply: ResponseEncodable {
    let isOpen: Bool
}

extension HTTPField.Name {
    /// Who asks: set by the gateway, which removes what a client sends under this name.
    static let remoteUser = HTTPField.Name("X-Remote-User")!
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
}

/// The bank's API. It trusts the gateway in front of it and nobody else: it listens on loopback only.
func bankRouter(_ ledger: Ledger) -> Router<BasicRequestContext> {
    let router = Router(options: .autoGenerateHeadEndpoints)
    // For everybody: an app asks before anybody has signed in.
    router.get("status") { _, _ in StatusReply(isOpen: true) }
    // For installations: the gateway has looked at theirs, and says no user's name.
    router.get("app-info") { _, _ in AppInfoReply(name: "Bank app", oldestVersion: "1.0") }
    // For a user, also one who is only remembered: it says no more than a name.
    router.get("greeting") { request, _ in GreetingReply(greeting: "Hello \(try user(of: request))") }
    router.get("accounts") { request, _ -> AccountReply in
        let owner = try user(of: request)
        guard let account = try await ledger.account(of: owner) else {
            throw HTTPError(.notFound, message: "You have no account here.")
        }
        return AccountReply(owner: owner, balance: account.balance.text, currency: account.currency)
    }
    router.get("transfers") { request, _ -> [TransferReply] in
        try await ledger.transfers(of: user(of: request)).map(TransferReply.init)
    }
    router.post("transfers") { request, context -> EditedResponse<TransferReply> in
        let sender = try user(of: request)
        guard let key = request.headers[.idempotencyKey], (1...200).contains(key.utf8.count) else {
            throw HTTPError(.badRequest, message: "A transfer needs an Idempotency-Key.")
        }
        let order = try await request.decode(as: TransferRequest.self, context: context)
        guard let amount = Money(order.amount), (1...100).contains(order.to.count) else {
            throw HTTPError(.badRequest, message: "A transfer needs a payee and an amount such as 200.00.")
        }
        do {
            let booked = try await ledger.transfer(
                from: sender, to: order.to, amount: amount, currency: order.currency, key: key)
            return EditedResponse(status: .created, response: TransferReply(booked))
        } catch Ledger.Refusal.noSuchAccount {
            throw HTTPError(.notFound, message: "You have no account in \(order.currency).")
        } catch Ledger.Refusal.insufficientFunds {
            throw HTTPError(.conflict, message: "Your balance does not cover this.")
        } catch Ledger.Refusal.keyUsedForAnotherTransfer {
            throw HTTPError(.unprocessableContent, message: "This Idempotency-Key belongs to another transfer.")
        }
    }
    return router
}

extension TransferReply {
    init(_ transfer: Ledger.Transfer) {
        self.init(
            id: transfer.id, from: transfer.from, to: transfer.to, amount: transfer.amount.text,
            currency: transfer.currency)
    }
}

private func user(of request: Request) throws -> String {
    guard let user = request.headers[.remoteUser], !user.isEmpty else {
        throw HTTPError(.unauthorized, message: "Nobody said who you are: call through the gateway.")
    }
    return user
}
