import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite("assent serve with its gateway, killed between take, forwarding and outcome")
struct GatewayCrashTests {
    /// How far it has come when it is killed: the transaction is taken and not yet noted as forwarded, the service has
    /// the request, or the client has the answer that is not yet noted.
    enum Moment: CaseIterable {
        case taken, forwarded, answered

        /// The writes that are refused so that it comes no further.
        var refused: String? {
            switch self {
            case .taken: "UPDATE OF forwarded_at, outcome ON transactions"
            case .forwarded: nil
            case .answered: "UPDATE OF outcome ON transactions"
            }
        }

        /// What the client was answered.
        var status: Int? {
            switch self {
            case .taken: 503
            case .forwarded: nil
            case .answered: 201
            }
        }

        /// What the next server says of it, until housekeeping says that nothing or nobody knows.
        var outcome: JSONValue { self == .taken ? ["state": "taken"] : ["state": "forwarded"] }

        /// How many requests the service has, then and later.
        var requests: Int { self == .taken ? 0 : 1 }
    }

    @Test("The next server says how far it had come, and sends no second request", arguments: Moment.allCases)
    func killed(at moment: Moment) async throws {
        let upstream = try await TestUpstream.start()
        try await ProcessWorld.run(upstream: upstream.port, restarts: true) { world in
            let first = try await world.start()
            let session = try await first.signIn("ana", password: #require(first.password))
            let id = try ServerFixture.transactionID(try await first.transfer(to: "Bob", session: session))
            #expect(try await first.approve(id, session: session).status == 200)
            if let writes = moment.refused {
                try await world.withDatabase { try await RefusedWrites.begin(writes, in: $0) }
            } else {
                upstream.hold()
            }
            let reply = Task { try? await first.transfer(to: "Bob", session: session, transaction: id) }
            if moment == .forwarded { await upstream.waitUntilHeld() } else { _ = await reply.value }
            first.process.signal(SIGKILL)
            #expect(await first.process.exit() == -SIGKILL)
            #expect(await reply.value?.status == moment.status)
            if moment == .forwarded {
                await upstream.release()
                upstream.answer(with: TestUpstream.answering)
            } else {
                try await world.withDatabase { try await RefusedWrites.end(in: $0) }
            }

            let second = try await world.start()
            for _ in 0..<3 {
                let again = try await second.transfer(to: "Bob", session: session, transaction: id)
                #expect(again.status == 409 && again.json["outcome"] == moment.outcome, "\(again.text)")
            }
            #expect(upstream.requests.count == moment.requests)
            // What was not asked yet is as good as ever.
            let other = try ServerFixture.transactionID(try await second.transfer(to: "Eva", session: session))
            #expect(try await second.approve(other, session: session).status == 200)
            #expect(try await second.transfer(to: "Eva", session: session, transaction: other).status == 201)
            #expect(upstream.requests.count == moment.requests + 1)
        }
        await upstream.stop()
    }
}
