import Assent
import Foundation
import HTTPTypes

/// The same payment through a gateway that has no database, and asks the server.
struct ElsewhereScene: Sendable {
    private let story: Story

    init(_ story: Story) { self.story = story }

    private static let payment: JSONValue = ["to": "Bob", "amount": "5.00", "currency": "EUR"]

    func tell(with assent: Assent) async throws {
        story.narration.tell(
            .step(
                number: 12,
                title: "A gateway elsewhere, without a database, asks the server about each request: she pays once"))
        let gateway = story.world.elsewhere
        try await gateway.run(of: story.world, logger: story.logger) {
            let before = try await story.balance(assent)
            let approved = Locked<String?>(nil)
            let url = gateway.url + "/transfers"
            let reply = try await assent.send(.post(url, json: Self.payment)) { approval in
                let id = approval.transactionID
                approved.withLock { $0 = id }
                return try story.answer(&approval)
            }
            story.check("approved at the server, made by the gateway elsewhere: 201", reply.status == 201)
            let after = try await story.balance(assent)
            story.check("paid once", Self.difference(before, after) == 5)
            let id = approved.withLock { $0 }
            let again = try await story.raw(assent, Self.payment, id: id, at: url)
            story.check("the same id again: 409", again.status == 409)
        }
    }

    private static func difference(_ before: String?, _ after: String?) -> Decimal? {
        guard let before = before.flatMap({ Decimal(string: $0) }), let after = after.flatMap({ Decimal(string: $0) })
        else { return nil }
        return before - after
    }
}
