#if PostgreSQL && os(Linux)
import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Payload encryption over two nodes")
struct SealedNodeTests {
    private static let form: HTTPFields = [.contentType: "text/plain"]

    @Test("A session of one node is one of the other, which reads it once")
    func shared() async throws {
        try await TwoNodes.run { nodes in
            let client = try await SealedClient(nodes.first, SealedClient.key(nodes.first))
            for (index, node) in [nodes.second, nodes.first, nodes.second].enumerated() {
                let sealed = try client.sealed(client.request(.get, "/open"), number: UInt64(index + 1))
                _ = try await client.call(sealed, on: node)
            }
            #expect(nodes.forwarded.count == 3)
        }
    }

    @Test("A frame that is copied to the other node runs once if it is unsafe")
    func copied() async throws {
        try await TwoNodes.run { nodes in
            let client = try await SealedClient(nodes.first, SealedClient.key(nodes.first))
            let sealed = try client.sealed(client.request(.post, "/open", Self.form), [1], number: 1)
            _ = try await client.call(sealed)
            for node in nodes.both { #expect(try await client.send(sealed.bytes, on: node).refusal == .repeated) }
            #expect(nodes.forwarded.count == 1)
        }
    }

    @Test("When the database has lost its unlogged rows, the session is unknown at a node that has not seen it")
    func lost() async throws {
        try await TwoNodes.run { nodes in
            let client = try await SealedClient(nodes.first, SealedClient.key(nodes.first))
            let database = nodes.first.server.context.database
            _ = try await database.run(SQLStatement("DELETE FROM payload_sessions"))
            _ = try await database.run(SQLStatement("DELETE FROM spent_proofs"))
            nodes.first.clock.advance(by: 1)
            let sealed = try client.sealed(client.request(.post, "/open", Self.form), [1], number: 1)
            #expect(try await client.send(sealed.bytes, on: nodes.second).refusal == .unknownSession)
            // The first node cannot tell whether the number was spent before.
            #expect(try await client.send(sealed.bytes).refusal == .unknownSession)
            #expect(nodes.forwarded.isEmpty)
        }
    }
}
#endif
