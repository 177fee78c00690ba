#if PostgreSQL && os(Linux)
import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import Foundation
import HTTPTypes
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Payload encryption over two nodes", .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
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

    @Test("38: A frame that is copied to the other node runs once if it is unsafe")
    func copied() async throws {
        try await TwoNodes.run { nodes in
            let client = try await SealedClient(nodes.first, SealedClient.key(nodes.first))
            let sealed = try client.sealed(client.request(.post, "/open", Self.form), [1], number: 1)
            _ = try await client.call(sealed)
            for node in nodes.both { #expect(try await client.send(sealed.bytes, on: node).refusal == .repeated) }
            #expect(nodes.forwarded.count == 1)
        }
    }

    @Test("38: A copy of a safe frame may run at the other node too, and at each node once")
    func copiedSafe() async throws {
        try await TwoNodes.run { nodes in
            let client = try await SealedClient(nodes.first, SealedClient.key(nodes.first))
            let sealed = try client.sealed(client.request(.get, "/open"), number: 1)
            for (index, node) in nodes.both.enumerated() {
                #expect(try await client.call(sealed, on: node).status == 200)
                for _ in 0..<2 { #expect(try await client.send(sealed.bytes, on: node).refusal == .repeated) }
                #expect(nodes.forwarded.count == index + 1)
            }
        }
    }

    private static func fields(_ named: [(String, String)]) throws -> HTTPFields {
        var fields = form
        for (name, value) in named { fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value)) }
        return fields
    }

    @Test("38: A copy of an unsafe frame is refused at each node and not forwarded, whatever credentials are inside")
    func credentials() async throws {
        try await TwoNodes.run { nodes in
            let node = nodes.first
            let (session, key) = (try await node.session(), try ProofKey())
            let bearer = ServerFixture.bearer(try await node.tokens(session: session).access)
            let bound = try await node.boundToken(session: session, to: key)
            let good = try await node.proved("POST", node.gateway("/files/x"), token: bound, by: key)
            let proof = good.filter { $0.0 == "DPoP" }
            let open = try await node.proved("POST", node.gateway("/open"), token: bound, by: key)
            let client = try await SealedClient(node, SealedClient.key(node))
            let cases = [
                ("/files/x", bearer), ("/files/x", bearer + [("DPoP", "x")]), ("/files/x", bearer + proof),
                ("/files/x", ServerFixture.session(session) + proof), ("/open", open), ("/open", [("DPoP", "x")]),
                ("/files/x", good),
            ]
            for (index, (path, named)) in cases.enumerated() {
                let request = client.request(.post, path, try Self.fields(named))
                let sealed = try client.sealed(request, [1], number: UInt64(index + 1))
                #expect(try await client.call(sealed).status == 201, "\(index)")
                for other in nodes.both {
                    #expect(try await client.send(sealed.bytes, on: other).refusal == .repeated, "\(index)")
                }
                #expect(nodes.forwarded.count == index + 1, "\(index)")
            }
        }
    }

    @Test("A copy that comes when its proof is too old gets no sealed answer, by which the call would be sent anew")
    func late() async throws {
        try await TwoNodes.run { nodes in
            let node = nodes.first
            let key = try ProofKey()
            let bound = try await node.boundToken(session: try await node.session(), to: key)
            let client = try await SealedClient(node, SealedClient.key(node))
            func frame(_ number: UInt64) async throws -> SealedClient.Sealed {
                let fields = try await node.proved("POST", node.gateway("/files/x"), token: bound, by: key)
                return try client.sealed(
                    client.request(.post, "/files/x", try Self.fields(fields)), [1], number: number)
            }
            let (held, other) = (try await frame(1), try await frame(2))
            #expect(try await client.call(held).status == 201)
            // The nonce in the proof ends meanwhile; at the second node alone, whose clock may be another one.
            nodes.second.clock.advance(by: 250)
            #expect(try await client.send(held.bytes, on: nodes.second).refusal == .repeated)
            // What was refused in a sealed answer does not run any more, where its proof would still be taken.
            #expect(try await client.call(other, on: nodes.second).status == 401)
            #expect(try await client.send(other.bytes).refusal == .repeated)
            #expect(nodes.forwarded.count == 1)
        }
    }

    @Test("The server spends the number of an unsafe frame, whether its route asks for token and proof or not")
    func asked() async throws {
        try await TwoNodes.run { nodes in
            let node = nodes.first
            let key = try ProofKey()
            let bound = try await node.boundToken(session: try await node.session(), to: key)
            let client = try await SealedClient(node, SealedClient.key(node), toGateway: false)
            func request(_ url: String) async throws -> HTTPRequest {
                let path = try #require(URLComponents(string: url)?.percentEncodedPath)
                var fields = try Self.fields(try await node.proved("POST", url, token: bound, by: key))
                fields[.contentType] = "application/json"
                return client.request(.post, path, fields)
            }
            let journey = try client.sealed(try await request(node.json("authenticate")), number: 1)
            #expect(try await client.call(journey).json["authId"]?.string != nil)
            for other in nodes.both { #expect(try await client.send(journey.bytes, on: other).refusal == .repeated) }
            let user = try client.sealed(try await request(node.oauth("userinfo")), number: 2)
            #expect(try await client.call(user).status == 200)
            for other in nodes.both { #expect(try await client.send(user.bytes, on: other).refusal == .repeated) }
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
