import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentServer

@Suite("Several gateways elsewhere: what was approved once is forwarded once between them")
struct GatewayRaceTests {
    /// How many takes of one transaction are sent at once.
    private static let takes = Soak.isOn ? 200 : 50

    /// Sends the same take many times at once, to each gateway in turn.
    private static func race(
        _ count: Int, at gateways: [GatewayAlone], transaction: String, session: String
    ) async throws -> [Answer] {
        try await withThrowingTaskGroup(of: Answer.self) { group in
            for index in 0..<count {
                let gateway = gateways[index % gateways.count]
                group.addTask { try await gateway.post(ServerFixture.session(session), transaction: transaction) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    private static func check(_ gateways: [GatewayAlone], rounds: Int) async throws {
        let session = try await gateways[0].engine.session()
        for round in 1...rounds {
            let id = try await gateways[0].approved(session: session)
            let answers = try await race(takes, at: gateways, transaction: id, session: session)
            #expect(answers.count { $0.status == 201 } == 1)
            // The others know that it was used, or the engine was too busy to say so.
            #expect(answers.allSatisfy { [201, 409, 503].contains($0.status) }, "\(Set(answers.map(\.status)))")
            #expect(gateways.reduce(0) { $0 + $1.upstream.requests.count } == round)
        }
    }

    @Test("Of many takes of one transaction over two gateways one reaches a service")
    func gateways() async throws {
        try await GatewayAlone.run { first in
            try await GatewayAlone.run(at: first.engine) { second in
                try await Self.check([first, second], rounds: 2)
            }
        }
    }

    #if PostgreSQL && os(Linux)
    @Test("Of many takes of one transaction over two gateways at two nodes one reaches a service")
    func nodes() async throws {
        try await TwoNodes.run { nodes in
            try await GatewayAlone.run(at: nodes.first) { first in
                try await GatewayAlone.run(at: nodes.second) { second in
                    try await Self.check([first, second], rounds: 2)
                }
            }
        }
    }
    #endif
}
